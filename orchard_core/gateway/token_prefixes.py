"""Which earlier calls' tokens stand at the front of a prompt, found in one pass over it."""

from __future__ import annotations

from array import array
from bisect import bisect_right, insort
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Generic, TypeVar

T = TypeVar("T")

_WIDTH = array("q").itemsize


@dataclass(slots=True)
class TokenPrefixes(Generic[T]):
    """Beginnings by length and digest. A digest of 16 bytes is taken for the ids themselves."""

    _held: dict[tuple[int, bytes], list[T]] = field(default_factory=dict)
    _lengths: list[int] = field(default_factory=list)
    """In order; few rollouts have two calls of the same length."""

    def put(self, spelled: bytes, ends: Sequence[tuple[int, T]]) -> None:
        """Hold items, each at the end of the first so many ids of these (8 bytes each); ends in order."""
        marks = zip(ends, _digests(spelled, (length for length, _ in ends)), strict=True)
        for (length, item), (_, digest) in marks:
            at = bisect_right(self._lengths, length)
            if self._lengths[at - 1 : at] != [length]:
                insort(self._lengths, length)
            self._held.setdefault((length, digest), []).append(item)

    def before(self, prompt: bytes) -> Iterator[tuple[int, Sequence[T]]]:
        """What is held at each beginning of these ids, with its length in ids, longest first."""
        lengths = self._lengths[: bisect_right(self._lengths, len(prompt) // _WIDTH)]
        marks = list(_digests(prompt, lengths))
        return ((mark[0], self._held[mark]) for mark in reversed(marks) if mark in self._held)


def _digests(spelled: bytes, lengths: Iterable[int]) -> Iterator[tuple[int, bytes]]:
    view, at, digest = memoryview(spelled), 0, blake2b(digest_size=16)
    for length in lengths:
        digest.update(view[at * _WIDTH : length * _WIDTH])
        at = length
        yield length, digest.copy().digest()
