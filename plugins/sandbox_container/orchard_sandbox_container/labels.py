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
SANDBOX, SPEC, OWNER, BOX, CREATED = (
    f"{PREFIX}{name}" for name in ("sandbox", "spec", "owner", "box", "created")
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
    }


def read_labels(labels: Mapping[str, str] | None) -> Told | None:
    """What they say; None for a container that is none of ours."""
    labels = labels or {}
    if labels.get(MANAGED) != MANAGER:
        return None
    try:
        return Told(
            standing=StandingSandbox(
                id=labels[SANDBOX],
                spec=SandboxSpec.model_validate_json(labels[SPEC]),
                created=float(labels[CREATED]),
            ),
            owner=Owner.model_validate_json(labels[OWNER]),
            box=labels[BOX],
        )
    except (KeyError, ValueError):
        return None
