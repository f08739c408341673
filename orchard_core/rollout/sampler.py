"""How many rollouts of a task make a group: the contract and the plain sampler.

A sampler decides and the scheduler executes. It is pure: the same pool gives the same decision, so a
resumed run continues where it stood.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

from orchard_core.types.base import Record
from orchard_core.types.rollout import Outcome


class PoolEntry(Record):
    """What a sampler may know of one finished rollout."""

    rollout: str
    """Its id."""
    attempt: int
    """Which attempt, from 0."""
    outcome: Outcome
    """How it ended."""
    score: float | None
    """Its score; None when it could not be had."""
    response_tokens: int = 0
    """Sampled tokens."""


class More(Record):
    """Run so many further rollouts."""

    action: Literal["more"] = "more"
    """Tells decisions apart."""
    count: int
    """At least 1."""


class Done(Record):
    """The group is complete."""

    action: Literal["done"] = "done"
    """Tells decisions apart."""
    group: tuple[str, ...]
    """Ids of the chosen rollouts."""


class Drop(Record):
    """No group can be had from this task."""

    action: Literal["drop"] = "drop"
    """Tells decisions apart."""
    reason: str
    """For logs and counts."""


class GroupSampler(Protocol):
    """Decides, from what has finished, whether a task needs more rollouts."""

    def next(self, pool: Sequence[PoolEntry]) -> More | Done | Drop:
        """The decision for this pool. Pure."""


class FixedSampler(Record):
    """Exactly `size` rollouts, whatever their outcome."""

    size: int
    """Rollouts in a group."""

    def next(self, pool: Sequence[PoolEntry]) -> More | Done | Drop:
        """More until there are `size`."""
        if len(pool) < self.size:
            return More(count=self.size - len(pool))
        return Done(group=tuple(entry.rollout for entry in pool[: self.size]))
