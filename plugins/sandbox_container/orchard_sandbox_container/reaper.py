"""Cleaning up after drivers that died without closing. Only what is provably ours and dead is touched."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import time
from dataclasses import dataclass

from orchard_core import SandboxError
from orchard_sandbox_container.box import BoxRoot
from orchard_sandbox_container.engine import Engine
from orchard_sandbox_container.labels import MANAGED, MANAGER, Told, read_labels
from orchard_sandbox_container.snapshots import REPOSITORY, owner_of

GRACE_S = 60.0
"""A driver that lives has this long to end what has outlived its TTL."""
_FILTER = json.dumps({"label": [f"{MANAGED}={MANAGER}"]})


@dataclass(frozen=True, slots=True, kw_only=True)
class Ours:
    """A container with our labels."""

    container: str
    """The engine's id of it."""
    state: str
    """`running`, `exited`, ... in the engine's words."""
    told: Told
    """What its labels say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reaped:
    """What a clean-up removed."""

    sandboxes: tuple[str, ...] = ()
    """Ids of sandboxes."""
    snapshots: int = 0
    """Committed images."""
    boxes: int = 0
    """Directories without a container."""
    left: tuple[str, ...] = ()
    """Sandboxes that could not be removed."""


async def list_ours(engine: Engine) -> list[Ours]:
    """All of them, whoever made them, or none: raises SandboxUnavailable, EngineRefused."""
    rows = await engine.get("/containers/json", {"all": "true", "filters": _FILTER})
    found = [(row, read_labels(row.get("Labels"))) for row in rows or ()]
    return [
        Ours(container=row["Id"], state=str(row.get("State") or ""), told=told)
        for row, told in found
        if told is not None
    ]


async def reap(engine: Engine, root: BoxRoot, *, keep: bool = False) -> Reaped:
    """Remove this user's containers whose driver is provably dead (unless `keep`), and those that nobody
    ended though their TTL has passed; then snapshots and directories of dead drivers.

    Raises SandboxUnavailable, EngineRefused when the engine does not tell what there is; nothing is removed
    then.
    """
    ours = await list_ours(engine)
    doomed = [one for one in ours if _is_dead(one, root, keep=keep)]
    ended = await asyncio.gather(*(_remove(engine, root, one) for one in doomed))
    kept = {one.told.box for one in ours} - {
        one.told.box for one, done in zip(doomed, ended, strict=True) if done
    }
    return Reaped(
        sandboxes=tuple(one.told.standing.id for one, done in zip(doomed, ended, strict=True) if done),
        snapshots=await _remove_snapshots(engine),
        boxes=await asyncio.to_thread(_remove_boxes, root, kept),
        left=tuple(one.told.standing.id for one, done in zip(doomed, ended, strict=True) if not done),
    )


def _is_dead(one: Ours, root: BoxRoot, *, keep: bool) -> bool:
    if one.told.owner.user != os.geteuid():
        return False
    box = root.box(one.told.box)
    owner = (box.owner() if box is not None else None) or one.told.owner
    if owner.is_dead() and not keep:
        return True
    standing = one.told.standing
    # The wall clock may have stepped; of another boot there is no better one.
    age_s = time.time() - standing.created if standing.age_s is None else standing.age_s
    return age_s > standing.spec.ttl_s + GRACE_S and not owner.is_alive()


async def _remove(engine: Engine, root: BoxRoot, one: Ours) -> bool:
    try:
        await engine.delete(f"/containers/{one.container}", {"force": "true", "v": "true"})
    except SandboxError:
        return False
    box = root.box(one.told.box)
    if box is not None:
        await asyncio.to_thread(box.remove)
    return True


async def _remove_snapshots(engine: Engine) -> int:
    removed = 0
    wanted = json.dumps({"reference": [REPOSITORY]})
    for row in await engine.get("/images/json", {"filters": wanted}) or ():
        for name in row.get("RepoTags") or ():
            owner = owner_of(name)
            if owner is None or not owner.is_dead():
                continue
            with contextlib.suppress(SandboxError):  # a container still needs it
                await engine.delete(f"/images/{name}")
                removed += 1
    return removed


def _remove_boxes(root: BoxRoot, kept: set[str]) -> int:
    """Directories that no container names and whose driver is dead."""
    removed = 0
    for box in root.boxes():
        owner = box.owner()
        if box.path.name not in kept and owner is not None and owner.is_dead():
            box.remove()
            removed += 1
    return removed
