"""What stands on a container, so that any process can tell what it is."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from orchard_core import SandboxSpec, StandingSandbox
from orchard_sandbox_container.owner import Owner

PREFIX = "orchard.dev/"
MANAGED = f"{PREFIX}managed-by"
MANAGER = "orchard-sandbox-container"
SANDBOX, SPEC, OWNER, BOX, CREATED, SINCE = (
    f"{PREFIX}{name}" for name in ("sandbox", "spec", "owner", "box", "created", "since")
)
NAME = "orchard-"
"""Before a sandbox's id in its container's name: names of containers are unique on an engine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What the labels of one container say."""

    standing: StandingSandbox
    """The sandbox."""
    owner: Owner
    """Who made it; who answers for it now stands in its box."""
    box: str
    """Name of its box."""


def labels_for(sandbox_id: str, spec: SandboxSpec, owner: Owner, box: str) -> dict[str, str]:
    """The labels of a new container. The content of the spec's files is left out."""
    return {
        MANAGED: MANAGER,
        SANDBOX: sandbox_id,
        SPEC: spec.model_copy(update={"files": ()}).model_dump_json(),
        OWNER: owner.model_dump_json(),
        BOX: box,
        CREATED: f"{time.time():.3f}",
        SINCE: f"{_since_boot():.3f}",
    }


def read_labels(labels: Mapping[str, str] | None) -> Told | None:
    """What they say; None for a container that is none of ours."""
    labels = labels or {}
    if labels.get(MANAGED) != MANAGER:
        return None
    try:
        owner = Owner.model_validate_json(labels[OWNER])
        return Told(
            standing=StandingSandbox(
                id=labels[SANDBOX],
                spec=SandboxSpec.model_validate_json(labels[SPEC]),
                created=float(labels[CREATED]),
                age_s=_age_s(labels.get(SINCE), owner),
            ),
            owner=owner,
            box=labels[BOX],
        )
    except (KeyError, ValueError):
        return None


def _age_s(since: str | None, owner: Owner) -> float | None:
    return _since_boot() - float(since) if since and owner.of_this_boot else None


def _since_boot() -> float:
    """Seconds by the clock of this machine that never steps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
