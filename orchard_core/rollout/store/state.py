"""What a journal says, replayed: what is planned, how often each was tried, and what is finished."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

from orchard_core.rollout.store.entry import (
    Cancelled,
    Dropped,
    Entry,
    Finished,
    Planned,
    Retried,
    Spent,
    Started,
)


class RunState:
    """The run as its journal tells it."""

    def __init__(self) -> None:
        self.planned: dict[str, Planned] = {}
        """By rollout id, in the order they were planned."""
        self.finished: dict[str, Finished] = {}
        """By rollout id, the newest line of each."""
        self.tries: dict[str, int] = {}
        """Times each rollout was started and came to an end of its own."""
        self.gradings: dict[str, int] = {}
        """Times the newest finished try of each rollout was graded."""
        self.lost: dict[str, Spent] = {}
        """What tries used up that are not the newest finished one of their rollout, by rollout id."""
        self.lost_s: dict[str, float] = {}
        """Seconds that those tries took, by rollout id."""
        self.began: dict[str, float] = {}
        """When the first try of each rollout took a slot, seconds since the epoch."""
        self._since: dict[str, float] = {}
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
                self._finish(entry)
                self.ends[entry.shard] = max(entry.offset + entry.length, self.ends.get(entry.shard, 0))
                self.tries[entry.id] = max(entry.tries, self.tries.get(entry.id, 0))
            case Retried():
                self.tries[entry.id] = max(entry.tries, self.tries.get(entry.id, 0))
                self._lose(entry.id, entry.spent, seconds=self._ran(entry))
            case Cancelled():
                self._lose(entry.id, entry.spent, seconds=self._ran(entry))
            case Dropped():
                self.dropped[entry.task] = entry.reason
            case Started():
                self._since[entry.id] = entry.at
                self.began.setdefault(entry.id, entry.at)

    def _finish(self, entry: Finished) -> None:
        """A newer line of the same try is the same work graded again; one of another try replaces it."""
        before = self.finished.get(entry.id)
        again = before is not None and before.tries == entry.tries
        self.gradings[entry.id] = self.gradings.get(entry.id, 0) + 1 if again else 1
        if before is not None and not again:
            self._lose(entry.id, before.spent, seconds=before.finished_at - before.started_at)
        self.finished[entry.id] = entry

    def _ran(self, entry: Retried | Cancelled) -> float:
        return entry.at - self._since.pop(entry.id, entry.at)

    def _lose(self, name: str, spent: Spent, *, seconds: float) -> None:
        self.lost[name] = self.lost.get(name, Spent()) + spent
        self.lost_s[name] = self.lost_s.get(name, 0.0) + seconds

    def spent(self) -> Spent:
        """Everything used up: the finished rollouts, and the tries that were repeated or stopped."""
        return sum((entry.spent for entry in self.finished.values()), sum(self.lost.values(), Spent()))

    def spent_on(self, entry: Finished) -> Spent:
        """What all tries of a finished rollout used up."""
        return entry.spent + self.lost.get(entry.id, Spent())

    def seconds_of(self, entry: Finished) -> float:
        """Seconds that all its tries took, the pauses between them left out."""
        return entry.finished_at - entry.started_at + self.lost_s.get(entry.id, 0.0)

    def span_s(self, entries: Iterable[Finished]) -> float:
        """Seconds from the first start of any of these, earlier tries included, to the last end."""
        found = list(entries)
        starts = (min(entry.started_at, self.began.get(entry.id, entry.started_at)) for entry in found)
        return max(entry.finished_at for entry in found) - min(starts) if found else 0.0

    def missing(self) -> list[Planned]:
        """What is planned and not finished, in order."""
        return [item for item in self.planned.values() if item.id not in self.finished]
