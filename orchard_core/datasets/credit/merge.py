"""Merge rules: what becomes of rise segments before they are trained on.

The paper says that the median segment has about 2 steps "before merging with surrounding context", and does
not say how they are merged. The rules here, by name; all but `none` also train on answers whose own value did
not rise:

- `none`: as they are (the default);
- `gap:N`: segments with at most N turns between them become one, those turns included;
- `context:N`: each is widened by N turns on both sides, and what then overlaps or touches becomes one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from orchard_core.errors import ConfigError
from orchard_core.types.credit import RiseSegment

Segments = Sequence[RiseSegment]


def _none(segments: Segments, reach: int, turns: int) -> tuple[RiseSegment, ...]:
    return tuple(segments)


def _gap(segments: Segments, reach: int, turns: int) -> tuple[RiseSegment, ...]:
    joined: list[RiseSegment] = []
    for segment in segments:
        if joined and segment.start - joined[-1].stop <= reach:
            start, stop = joined[-1].start, max(joined[-1].stop, segment.stop)
            joined[-1] = RiseSegment(start=start, stop=stop)
        else:
            joined.append(segment)
    return tuple(joined)


def _context(segments: Segments, reach: int, turns: int) -> tuple[RiseSegment, ...]:
    wide = [
        RiseSegment(start=max(0, segment.start - reach), stop=min(turns, segment.stop + reach))
        for segment in segments
    ]
    return _gap(wide, 0, turns)


RULES: Mapping[str, Callable[[Segments, int, int], tuple[RiseSegment, ...]]] = {
    "none": _none,
    "gap": _gap,
    "context": _context,
}
"""By name; each is given segments in order that do not overlap, N, and the number of turns."""

_BARE = frozenset({"none"})
"""Rules without a number."""

_NUMBER = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeRule:
    """A rule and its N."""

    name: str
    """A key of RULES."""
    reach: int = 0
    """N, in turns."""

    def __call__(self, segments: Segments, turns: int) -> tuple[RiseSegment, ...]:
        """Segments in order, none overlapping another."""
        return RULES[self.name](segments, self.reach, turns)

    def __str__(self) -> str:
        return self.name if self.name in _BARE else f"{self.name}:{self.reach}"


def merge_rule(text: str) -> MergeRule:
    """The rule of a text such as `gap:2`. Raises ConfigError."""
    name, colon, number = text.partition(":")
    bare = name in _BARE
    if name not in RULES or bare == bool(colon) or not (bare or _NUMBER.fullmatch(number)):
        raise ConfigError(f"{text!r} is no merge rule", hint="use none, gap:N or context:N, as in gap:2")
    return MergeRule(name=name, reach=int(number or 0))
