"""How much of each of many known texts stands in another text, by common runs of words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orchard_core.datasets.similar.arrays import NDArray, Words64, np
from orchard_core.datasets.similar.words import Words, runs

_SIEVE = 1 << 20
"""Slots of the first look: a run whose slot is empty is none of ours. 1 MB, so that it stays in the cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contained:
    """How much of a known text was found."""

    text: int
    """Its place."""
    share: float
    """Share of its own words, those of boilerplate left out, that stand in common runs."""
    first: int
    """Where its longest stretch of found words begins, in words."""
    stop: int
    """One past that stretch."""


class RunIndex:
    """The runs of `length` words of known texts. Boilerplate, found in more than `common` of them, is left
    out."""

    def __init__(self, texts: Sequence[Words], places: Sequence[int], length: int, common: int):
        """`places` says which of `texts` take part: those of at least `length` words."""
        self.length = length
        hashes = [runs(texts[place], length) for place in places]
        owner = np.repeat(np.array(places, np.int64), [len(each) for each in hashes])
        position = np.concatenate([np.arange(len(each)) for each in hashes] or [np.zeros(0, np.int64)])
        every = np.concatenate(hashes or [np.zeros(0, np.uint64)])
        own = _rare(every, owner, common)
        order = np.argsort(every[own], kind="stable")
        self._hashes, self._owner, self._position = every[own][order], owner[own][order], position[own][order]
        self._sieve = np.zeros(_SIEVE, np.bool_)
        self._sieve[self._hashes & np.uint64(_SIEVE - 1)] = True
        self._sizes = {place: len(texts[place]) for place in places}
        self._own: dict[int, int] = {}
        for place in np.unique(self._owner).tolist():
            self._own[place] = int(self._covered(place, self._position[self._owner == place]).sum())

    def known(self, place: int) -> bool:
        """Whether a text has any run of its own."""
        return place in self._own

    def contained(self, words: Words) -> list[Contained]:
        """Every known text of which something is found, by its place."""
        if len(words) < self.length or not len(self._hashes):
            return []
        asked = runs(words, self.length)
        asked = asked[self._sieve[asked & np.uint64(_SIEVE - 1)]]
        if not len(asked):
            return []
        asked = np.unique(asked)
        left, right = np.searchsorted(self._hashes, asked), np.searchsorted(self._hashes, asked, side="right")
        hits = [np.arange(start, stop) for start, stop in zip(left, right, strict=True) if stop > start]
        if not hits:
            return []
        found = np.concatenate(hits)
        return [self._told(place, found) for place in np.unique(self._owner[found]).tolist()]

    def _told(self, place: int, found: NDArray[np.int64]) -> Contained:
        covered = self._covered(place, self._position[found[self._owner[found] == place]])
        edges = np.flatnonzero(np.diff(covered.astype(np.int8), prepend=0, append=0))
        starts, stops = edges[::2], edges[1::2]
        longest = int((stops - starts).argmax())
        return Contained(
            text=place,
            share=float(covered.sum()) / self._own[place],
            first=int(starts[longest]),
            stop=int(stops[longest]),
        )

    def _covered(self, place: int, positions: NDArray[np.int64]) -> NDArray[np.bool_]:
        """[W] which words of a known text lie in its runs at these positions."""
        steps = np.zeros(self._sizes[place] + 1, np.int64)
        np.add.at(steps, positions, 1)
        np.add.at(steps, positions + self.length, -1)
        return np.cumsum(steps)[:-1] > 0


def _rare(hashes: Words64, owner: NDArray[np.int64], common: int) -> NDArray[np.bool_]:
    """Which runs stand in at most `common` of the texts."""
    if not len(hashes):
        return np.zeros(0, np.bool_)
    order = np.lexsort((owner, hashes))
    sorted_hashes, sorted_owner = hashes[order], owner[order]
    fresh = np.ones(len(hashes), np.bool_)
    fresh[1:] = (sorted_hashes[1:] != sorted_hashes[:-1]) | (sorted_owner[1:] != sorted_owner[:-1])
    unique, inverse = np.unique(hashes, return_inverse=True)
    texts = np.zeros(len(unique), np.int64)
    np.add.at(texts, np.searchsorted(unique, sorted_hashes[fresh]), 1)
    rare: NDArray[np.bool_] = texts[inverse] <= common
    return rare
