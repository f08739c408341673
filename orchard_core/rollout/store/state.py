"""What a journal says, replayed: what is planned, how often each was tried, and what is finished."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

from orchard_core.rollout.store.entry import Cancelled, Dropped, Entry, Finished, Planned, Retried, Started


class RunState:
    """The run as its journal tells it."""

    def __init__(self) -> None:
        self.planned: dict[str, Planned] = {}
        """By rollout id, in the order they were planned."""
        self.finished: dict[str, Finished] = {}
        """By rollout id, the newest line of each."""
        self.tries: dict[str, int] = {}
        """Times each rollout was started and came to an end of its own."""
        self.dropped: dict[str, str] = {}
        """Task id to the reason why its sampler gave it up."""
        self.ends: dict[int, int] = {}
        """Shard number to the end of the last frame that a line points at, bytes."""

    @classmethod
    def replay(cls, entries: Iterable[Entry]) -> Self:
        """The state after these entries."""
        state = cls()
        for entry in entries:
            state.apply(entry)
        return state

    def apply(self, entry: Entry) -> None:
        """Take one more entry in."""
        match entry:
            case Planned():
                self.planned.setdefault(entry.id, entry)
            case Finished():
                self.finished[entry.id] = entry
                self.ends[entry.shard] = max(entry.offset + entry.length, self.ends.get(entry.shard, 0))
                self.tries[entry.id] = max(entry.tries, self.tries.get(entry.id, 0))
            case Retried():
                self.tries[entry.id] = max(entry.tries, self.tries.get(entry.id, 0))
            case Dropped():
                self.dropped[entry.task] = entry.reason
            case Started() | Cancelled():
                pass

    def missing(self) -> list[Planned]:
        """What is planned and not finished, in order."""
        return [item for item in self.planned.values() if item.id not in self.finished]
