"""Near duplicates among all texts at hand. What is linked does not depend on the order of the texts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from orchard_core.datasets.similar.arrays import Words64, np
from orchard_core.datasets.similar.bands import band_plan
from orchard_core.datasets.similar.index import NEAR
from orchard_core.datasets.similar.minhash import SHORT_SHINGLE, SIZE, agreeing, of_hashes
from orchard_core.datasets.similar.words import runs, split

SLACK = 0.12
"""How far below the threshold an estimate may lie for the pair still to be compared exactly: more than three
standard errors."""
CROWD = 256
"""Texts of one band that later ones are compared with: its first ones, so that a hundred thousand texts of
one template stay affordable. Beyond it a group may come out as two."""


class Unions:
    """Disjoint sets of the numbers 0 to n - 1; the name of a set is its smallest number."""

    def __init__(self, count: int):
        self._above = list(range(count))

    def find(self, member: int) -> int:
        """The set's name."""
        above = self._above
        while above[member] != member:
            above[member] = above[above[member]]
            member = above[member]
        return member

    def join(self, one: int, other: int) -> None:
        """Make two sets one."""
        low, high = sorted((self.find(one), self.find(other)))
        self._above[high] = low

    def groups(self) -> list[tuple[int, ...]]:
        """Every set, those of one member too, by smallest member; members ascend."""
        found: dict[int, list[int]] = {}
        for member in range(len(self._above)):
            found.setdefault(self.find(member), []).append(member)
        return [tuple(members) for members in found.values()]


def near_links(
    texts: Sequence[str],
    threshold: float = NEAR,
    *,
    shingle: int = SHORT_SHINGLE,
    apart: Sequence[int] | None = None,
) -> Iterator[tuple[int, int]]:
    """Pairs of near duplicates, the smaller place first: enough of them to link every group.

    Candidates come from bands of their signatures and are compared by the exact Jaccard resemblance of their
    sets of shingles. A text without words is in no pair. Raises ConfigError for a threshold outside (0, 1].
    Texts that have the same number of 0 or more in `apart` are not compared with each other.
    """
    plan = band_plan(threshold)
    signed = _Signed(texts, shingle)
    labels = np.full(len(texts), -1, np.int64) if apart is None else np.array(apart, np.int64)
    linked = Unions(len(texts))
    crowds: dict[bytes, list[int]] = {}
    for place in signed.places:
        others = np.array(_sharing(crowds, plan.keys(signed.signatures[place].tobytes()), place), np.intp)
        others = others[(labels[others] < 0) | (labels[others] != labels[place])]
        likely = agreeing(signed.signatures[place], signed.signatures[others]) >= threshold - SLACK
        for other in others[likely].tolist():
            if linked.find(other) == linked.find(place):
                continue
            if jaccard(signed.shingles[other], signed.shingles[place]) >= threshold:
                linked.join(other, place)
                yield other, place


class _Signed:
    """The texts' sets of shingles and their signatures."""

    def __init__(self, texts: Sequence[str], shingle: int):
        self.shingles = [np.unique(runs(split(text), shingle)) for text in texts]
        self.places = [place for place, shingles in enumerate(self.shingles) if len(shingles)]
        self.signatures = np.zeros((len(texts), SIZE), np.uint8)
        for place in self.places:
            self.signatures[place] = np.frombuffer(of_hashes(self.shingles[place]), np.uint8)


def _sharing(crowds: dict[bytes, list[int]], bands: Iterable[bytes], place: int) -> list[int]:
    """The earlier texts of each band, ascending; the text is put to them."""
    found: set[int] = set()
    for band in bands:
        crowd = crowds.setdefault(band, [])
        found.update(crowd)
        if len(crowd) < CROWD:
            crowd.append(place)
    return sorted(found)


def jaccard(one: Words64, other: Words64) -> float:
    """The resemblance of two sets of hashes, each sorted and without repeats; 0 for an empty one."""
    if not len(one) or not len(other):
        return 0.0
    common = int(np.count_nonzero(one[np.searchsorted(one, other).clip(max=len(one) - 1)] == other))
    return common / (len(one) + len(other) - common)
