"""What has finished and what is still open, by task."""

from __future__ import annotations

from collections import Counter

from orchard_core.rollout.sampler import PoolEntry
from orchard_core.rollout.store.entry import Finished, Planned


class Pool:
    """Answers what a sampler may know, in an order that does not depend on which rollout ended first."""

    def __init__(self) -> None:
        self._entries: dict[str, dict[str, PoolEntry]] = {}
        self._planned: Counter[str] = Counter()

    def plan(self, planned: Planned) -> None:
        """One more rollout of a task."""
        self._planned[planned.task] += 1

    def add(self, entry: Finished) -> None:
        """A rollout has finished."""
        self._entries.setdefault(entry.task, {})[entry.id] = PoolEntry(
            rollout=entry.id,
            attempt=entry.attempt,
            outcome=entry.outcome,
            score=entry.score,
            response_tokens=entry.usage.output,
        )

    def remove(self, entry: Finished) -> None:
        """A finished rollout is started again."""
        del self._entries[entry.task][entry.id]

    def entries(self, task: str) -> list[PoolEntry]:
        """The finished rollouts of a task, by attempt."""
        return sorted(self._entries.get(task, {}).values(), key=lambda entry: entry.attempt)

    def planned(self, task: str) -> int:
        """Rollouts of a task, finished or not."""
        return self._planned[task]

    def open(self, task: str) -> int:
        """Rollouts of a task that are not finished."""
        return self._planned[task] - len(self._entries.get(task, {}))
