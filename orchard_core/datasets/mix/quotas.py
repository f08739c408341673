"""How many rows each group gives: arithmetic alone, so that it can be held by properties.

A group is all rows that agree in source and in every field of `stratify`. With n_g rows in group g, the asked
shares of sources and values are marginals; the target p is the distribution over groups that meets them all
and is nearest to n / sum(n) in Kullback-Leibler divergence, found by iterative proportional fitting.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, isclose

from orchard_core.datasets.mix.recipe import MixExhausted
from orchard_core.errors import ConfigError

_SWEEPS = 5_000
_CLOSE = 1e-7


@dataclass(frozen=True, slots=True, kw_only=True)
class Marginal:
    """Asked shares of one field."""

    field: str
    """Its name, for messages."""
    labels: Sequence[Hashable]
    """[G] each group's value."""
    shares: Mapping[Hashable, float]
    """By value, with sum 1."""


def fitted(counts: Sequence[int], marginals: Sequence[Marginal]) -> list[float]:
    """[G] Target shares with sum 1; all 0 without any rows. Raises ConfigError when no mix can have them."""
    total = sum(counts)
    if not total:
        return [0.0] * len(counts)
    shares = [count / total for count in counts]
    for marginal in marginals:
        _has_all(marginal, counts)
    for _ in range(_SWEEPS):
        worst = 0.0
        for marginal in marginals:
            worst = max(worst, _scale(shares, marginal))
        if worst < _CLOSE:
            return shares
    names = " and ".join(dict.fromkeys(marginal.field for marginal in marginals))
    raise ConfigError(
        f"no mix of these rows has the asked shares of {names} at once",
        hint="ask for fewer of them, or make one `natural`",
    )


def _has_all(marginal: Marginal, counts: Sequence[int]) -> None:
    there = {label for label, count in zip(marginal.labels, counts, strict=True) if count}
    for label, share in marginal.shares.items():
        if share > 0 and label not in there:
            raise ConfigError(
                f"no row is left of {marginal.field} {label!r}, which is to have a share of {share:.3g}",
                hint="a --dry-run without shares says what was dropped; or take it out of the shares",
            )


def _scale(shares: list[float], marginal: Marginal) -> float:
    """One step of the fitting, in place; gives how far off the sums were before it."""
    sums: dict[Hashable, float] = {}
    for label, share in zip(marginal.labels, shares, strict=True):
        sums[label] = sums.get(label, 0.0) + share
    factors = {}
    for label, found in sums.items():
        asked = marginal.shares.get(label, 0.0)
        factors[label] = asked / found if found > 0 else 0.0
    for place, label in enumerate(marginal.labels):
        shares[place] *= factors[label]
    return max(abs(marginal.shares.get(label, 0.0) - found) for label, found in sums.items())


def rounded(shares: Sequence[float], total: int) -> list[int]:
    """Whole numbers with sum `total` in proportion to `shares`, each less than 1 off (largest remainders;
    ties go to the first)."""
    whole = sum(shares)
    if whole <= 0 or total <= 0:
        return [0] * len(shares)
    exact = [total * share / whole for share in shares]
    found = [floor(value + 1e-9) for value in exact]
    order = sorted(range(len(shares)), key=lambda place: (found[place] - exact[place], place))
    for place in order[: max(0, total - sum(found))]:
        found[place] += 1
    return found


def quotas(
    counts: Sequence[int],
    shares: Sequence[float],
    sources: Sequence[int],
    *,
    total: int | None,
    exhausted: MixExhausted,
    copies: int,
) -> list[int]:
    """[G] Rows to take of each group, repeats included; `sources` is each group's, `copies` the bound of
    repeats. Sums of a source are less than 1 off its share, of a group within it too."""
    if exhausted is MixExhausted.WITHOUT_REPLACEMENT:
        return _filled(counts, shares, sum(counts) if total is None else total)
    if exhausted is MixExhausted.FIRST:
        copies = 1
    most = _most([copies * count for count in counts], shares)
    if total is None:
        total = most if exhausted is MixExhausted.FIRST else _least_all(counts, shares)
    return _nested([copies * count for count in counts], shares, sources, min(total, most))


def _most(caps: Sequence[int], shares: Sequence[float]) -> int:
    """The largest total at which no group passes its cap."""
    bounds = [cap / share for cap, share in zip(caps, shares, strict=True) if share > 0]
    least = min(bounds, default=0.0)
    return _near(least) or floor(least)


def _least_all(counts: Sequence[int], shares: Sequence[float]) -> int:
    """The smallest total at which every group is used up."""
    bounds = [count / share for count, share in zip(counts, shares, strict=True) if share > 0]
    most = max(bounds, default=0.0)
    return _near(most) or ceil(most)


def _near(value: float) -> int:
    """The whole number that it is but for rounding errors, else 0."""
    near = round(value)
    return near if isclose(value, near, rel_tol=1e-6) else 0


def _nested(caps: Sequence[int], shares: Sequence[float], sources: Sequence[int], total: int) -> list[int]:
    """Rounded by source, then by group within each; what a cap cuts goes to the same source's others."""
    names = sorted(set(sources))
    members = {name: [place for place, own in enumerate(sources) if own == name] for name in names}
    sums = [sum(shares[place] for place in members[name]) for name in names]
    found = [0] * len(shares)
    for name, amount in zip(names, rounded(sums, total), strict=True):
        places = members[name]
        parts = rounded([shares[place] for place in places], amount)
        for place, part in zip(places, parts, strict=True):
            found[place] = min(part, caps[place])
        _give(found, caps, shares, places, amount - sum(found[place] for place in places))
    return found


def _give(
    found: list[int], caps: Sequence[int], shares: Sequence[float], places: Sequence[int], left: int
) -> None:
    for place in places:
        room = min(left, caps[place] - found[place]) if shares[place] > 0 else 0
        found[place] += room
        left -= room


def _filled(counts: Sequence[int], shares: Sequence[float], total: int) -> list[int]:
    """In proportion to the shares; what a used-up group cannot give, the others give in proportion."""
    found = [0] * len(counts)
    free = [place for place, share in enumerate(shares) if share > 0]
    left = min(total, sum(counts[place] for place in free))
    while free:
        parts = rounded([shares[place] for place in free], left)
        full = [place for place, part in zip(free, parts, strict=True) if part >= counts[place]]
        if not full:
            for place, part in zip(free, parts, strict=True):
                found[place] = part
            break
        for place in full:
            found[place] = counts[place]
            left -= counts[place]
        free = [place for place in free if place not in full]
    return found
