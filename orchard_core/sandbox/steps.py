"""The steps by which a sandbox comes up, noted by whoever takes them for whoever measures them.

with creation_steps() as steps:
    await provider.create(spec)
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import StrEnum


class CreationStep(StrEnum):
    """What has been reached."""

    PLACED = "placed"
    """A place is there: a directory, a container, a pod that the cluster has taken."""
    SCHEDULED = "scheduled"
    """A cluster has found a machine for it, and it has an address."""
    PULLED = "pulled"
    """Its image is on the machine. In a cluster: and its container has begun."""
    ANSWERED = "answered"
    """Its agent answers."""
    FURNISHED = "furnished"
    """Its directories and files are there: it is ready."""
    POOL_HIT = "pool_hit"
    """It stood ready in a pool, and was claimed."""
    POOL_MISS = "pool_miss"
    """A pool was asked, and had none."""


_NOTED: ContextVar[tuple[float, dict[CreationStep, float]] | None] = ContextVar(
    "creation_steps", default=None
)


@contextmanager
def creation_steps() -> Iterator[dict[CreationStep, float]]:
    """Steps that are reached within the block, in its task and those that it starts, each with the seconds
    since the block began."""
    steps: dict[CreationStep, float] = {}
    token = _NOTED.set((time.monotonic(), steps))
    try:
        yield steps
    finally:
        _NOTED.reset(token)


def note_step(step: CreationStep, *, ago_s: float = 0.0) -> None:
    """It has been reached now, or as long ago, but not before the step that was noted last. Costs next to
    nothing when nobody measures."""
    noted = _NOTED.get()
    if noted is not None:
        began, steps = noted
        now = time.monotonic() - began
        steps[step] = min(now, max(now - ago_s, *steps.values(), 0.0))
