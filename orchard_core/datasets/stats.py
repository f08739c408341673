"""What rows add up to: counts, lengths and how much of them is trained, by whatever they differ in."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from orchard_core.datasets.similar.tasks import set_name
from orchard_core.datasets.stats_read import Measured
from orchard_core.types.base import Record
from orchard_core.types.sample import SampleLabel

DIMENSIONS = ("split", "source", "label", "harness", "model", "taskset", "outcome", "credit")
"""What rows can be grouped by."""
DEFAULT_BY = (("split",), ("harness",), ("model",), ("taskset",), ("outcome",))
"""One table for each."""
_DIGITS = 3


class Quantiles(Record):
    """Of one number over rows, each value taken to three significant digits."""

    p10: float = 0.0
    """A tenth of the rows has at most this."""
    p50: float = 0.0
    """The median."""
    p90: float = 0.0
    """Nine tenths have at most this."""
    p99: float = 0.0
    """99 of 100 have at most this."""
    max: float = 0.0
    """The largest, exactly."""
    mean: float = 0.0
    """The mean, exactly."""


class GroupStats(Record):
    """Rows that have some values in common."""

    by: Mapping[str, str]
    """Those values; empty: all rows."""
    rows: int
    """How many."""
    tasks: int
    """Different tasks."""
    rollouts: int
    """Different rollouts, told by their main conversations."""
    scored: int
    """Those of them with a reward."""
    resolved: int
    """Those with a reward of at least the threshold."""
    turns: Quantiles
    """Answers of a row."""
    tokens: Quantiles
    """Tokens of a row."""
    exact: int
    """Rows whose tokens the server counted."""
    sum_turns: int
    """Answers in all."""
    trained_turns: int
    """Those that are trained on."""
    sum_tokens: int
    """Tokens in all."""
    recorded: int
    """Tokens whose ids are known."""
    trained_tokens: int
    """Those of them that are trained on."""
    credit: Mapping[str, int]
    """Rows by what assigned credit; `` for none."""


class DatasetStats(Record):
    """All rows, and the same by groups."""

    threshold: float
    """A reward of at least this is resolved."""
    total: GroupStats
    """All rows."""
    groups: tuple[tuple[GroupStats, ...], ...]
    """One list for each grouping, largest group first."""


def build_stats(
    rows: Iterable[Measured], *, by: Sequence[Sequence[str]] = DEFAULT_BY, threshold: float = 1.0
) -> DatasetStats:
    """Reads each row once; memory grows with the number of groups and of tasks, not of rows."""
    total = _Sums()
    groups: list[dict[tuple[str, ...], _Sums]] = [{} for _ in by]
    for row in rows:
        total.add(row, threshold)
        for names, held in zip(by, groups, strict=True):
            key = tuple(_value(row, name) for name in names)
            held.setdefault(key, _Sums()).add(row, threshold)
    return DatasetStats(
        threshold=threshold,
        total=total.stats({}),
        groups=tuple(tuple(_sorted(names, held)) for names, held in zip(by, groups, strict=True)),
    )


def _sorted(names: Sequence[str], held: Mapping[tuple[str, ...], _Sums]) -> Iterator[GroupStats]:
    for key, sums in sorted(held.items(), key=lambda item: (-item[1].rows, item[0])):
        yield sums.stats(dict(zip(names, key, strict=True)))


def _value(row: Measured, name: str) -> str:
    value = getattr(row.facts, name)
    return "" if value is None else str(getattr(value, "value", value))


@dataclass(slots=True)
class _Numbers:
    """Values of one number, by three digits."""

    counts: Counter[int] = field(default_factory=Counter)
    total: int = 0
    largest: int = 0

    def add(self, value: int) -> None:
        self.counts[_rounded(value)] += 1
        self.total += value
        self.largest = max(self.largest, value)

    def quantiles(self, rows: int) -> Quantiles:
        if not rows:
            return Quantiles()
        places = {f"p{share}": max(1, math.ceil(rows * share / 100)) for share in (10, 50, 90, 99)}
        told: dict[str, float] = {}
        met = 0
        for value, count in sorted(self.counts.items()):
            met += count
            own = min(value, self.largest)
            told |= {name: own for name, place in places.items() if name not in told and place <= met}
        return Quantiles(**told, max=self.largest, mean=self.total / rows)


def _rounded(value: int) -> int:
    digits = len(str(value))
    return round(value, _DIGITS - digits) if digits > _DIGITS else value


@dataclass(slots=True)
class _Sums:
    rows: int = 0
    tasks: set[int] = field(default_factory=set)
    rollouts: int = 0
    scored: int = 0
    resolved: int = 0
    turns: _Numbers = field(default_factory=_Numbers)
    tokens: _Numbers = field(default_factory=_Numbers)
    exact: int = 0
    trained_turns: int = 0
    recorded: int = 0
    trained_tokens: int = 0
    credit: Counter[str] = field(default_factory=Counter)

    def add(self, row: Measured, threshold: float) -> None:
        facts = row.facts
        self.rows += 1
        self.tasks.add(hash((set_name(facts.taskset), facts.task)))
        if facts.label is SampleLabel.MAIN:
            self.rollouts += 1
            self.scored += facts.reward is not None
            self.resolved += facts.reward is not None and facts.reward >= threshold
        self.turns.add(facts.turns)
        self.tokens.add(facts.token_count)
        self.exact += facts.token_count_exact
        self.trained_turns += facts.trained_turns
        self.recorded += row.tokens
        self.trained_tokens += row.trained_tokens
        self.credit[facts.credit] += 1

    def stats(self, by: Mapping[str, str]) -> GroupStats:
        return GroupStats(
            by=by, rows=self.rows, tasks=len(self.tasks), rollouts=self.rollouts, scored=self.scored,
            resolved=self.resolved, turns=self.turns.quantiles(self.rows),
            tokens=self.tokens.quantiles(self.rows), exact=self.exact, sum_turns=self.turns.total,
            trained_turns=self.trained_turns, sum_tokens=self.tokens.total, recorded=self.recorded,
            trained_tokens=self.trained_tokens, credit=dict(self.credit),
        )  # fmt: skip
