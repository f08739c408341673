"""Which requests stand at the front of another, found in one walk along it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")


class Prefixes(Generic[T]):
    """Lists of content hashes as a tree; what was put at a list is met by each longer one that begins so."""

    def __init__(self) -> None:
        self._steps: dict[tuple[int, str], int] = {}
        self._held: dict[int, list[T]] = {}

    def put(self, messages: Sequence[str], item: T) -> None:
        """Hold an item at the end of a list."""
        place = 0
        for message in messages:
            place = self._steps.setdefault((place, message), len(self._steps) + 1)
        self._held.setdefault(place, []).append(item)

    def before(self, messages: Sequence[str]) -> Iterator[tuple[int, Sequence[T]]]:
        """What is held at each proper beginning of a list, with that beginning's length, longest first."""
        met = [(0, self._held.get(0, []))]
        place = 0
        for count, message in enumerate(messages[:-1], 1):
            step = self._steps.get((place, message))
            if step is None:
                break
            place = step
            met.append((count, self._held.get(place, [])))
        return ((count, held) for count, held in reversed(met) if held)
