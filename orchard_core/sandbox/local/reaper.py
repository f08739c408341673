"""Cleaning up after drivers that died without closing, whatever killed them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from orchard_core.sandbox.local.cgroups import remove_cgroup_tree
from orchard_core.sandbox.local.removal import remove_tree
from orchard_core.sandbox.local.state import DriverState, candidate_roots, claim_dead


@dataclass(frozen=True, slots=True, kw_only=True)
class Reaped:
    """What a clean-up found."""

    drivers: int = 0
    """Dead drivers whose directories are gone now."""
    sandboxes: int = 0
    """Their sandboxes."""
    snapshots: int = 0
    """Their snapshots."""
    cgroups: int = 0
    """Cgroup trees removed."""
    left: tuple[str, ...] = ()
    """Paths that could not be removed."""


def reap(state_dir: str | None = None) -> Reaped:
    """Remove what dead drivers of this user left: cgroups with every process in them, and directories.

    Live drivers are never touched: theirs is the lock. Without `state_dir` every default place is looked at.
    Blocking; a provider calls it in a thread when it starts.
    """
    drivers = sandboxes = snapshots = cgroups = 0
    left: list[str] = []
    for root in candidate_roots(state_dir):
        for state in claim_dead(root):
            sandboxes += _count(state.path / "boxes")
            snapshots += _count(state.path / "snapshots")
            removed, stuck = _remove_cgroups(state)
            cgroups += removed
            left += stuck
            if remove_tree(state.path):
                drivers += 1
            else:
                left.append(str(state.path))
            state.release()
    return Reaped(
        drivers=drivers, sandboxes=sandboxes, snapshots=snapshots, cgroups=cgroups, left=tuple(left)
    )


def _count(directory: Path) -> int:
    try:
        return sum(1 for _ in directory.iterdir())
    except OSError:
        return 0


def _remove_cgroups(state: DriverState) -> tuple[int, list[str]]:
    try:
        noted = json.loads((state.path / "cgroups.json").read_text())
    except (OSError, ValueError):
        return 0, []
    paths = [Path(text) for text in noted if Path(text).name == f"orchard-{state.id}"]
    found = [path for path in paths if path.is_dir()]
    stuck = [str(path) for path in found if not remove_cgroup_tree(path)]
    return len(found) - len(stuck), stuck
