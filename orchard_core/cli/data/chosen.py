"""Which rows go from one place to another, as flags say it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from orchard_core.errors import ConfigError
from orchard_core.types.dataset import DatasetRow
from orchard_core.types.sample import SampleLabel

_NAMES = ("harness", "model", "taskset", "task", "outcome", "split", "source", "label", "tag")
_SHOWN = 8
"""Values that a hint names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """Which rows go."""

    wanted: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """By the field's name, the values that will do."""
    min_reward: float | None = None
    """The least reward; rows without one are left out then."""
    limit: int | None = None
    """At most so many."""
    threads: frozenset[SampleLabel] = frozenset(SampleLabel)
    """Of runs: which conversations."""

    @classmethod
    def of(cls, where: Sequence[str], *, min_reward: float | None, limit: int | None, threads: str) -> Chosen:
        """From flags. Raises ConfigError."""
        wanted: dict[str, set[str]] = {}
        for pair in where:
            name, equals, value = pair.partition("=")
            if not equals or name not in _NAMES:
                raise ConfigError(
                    f"--where {pair!r} is not NAME=VALUE with a known name",
                    hint=f"names: {', '.join(_NAMES)}",
                )
            wanted.setdefault(name, set()).add(value)
        return cls(
            wanted={name: frozenset(values) for name, values in wanted.items()},
            min_reward=min_reward,
            limit=limit,
            threads=labels_of(threads),
        )

    def rows(self, rows: Iterable[DatasetRow]) -> Iterator[DatasetRow]:
        """Those of them that go. Raises ConfigError when there are rows and none goes."""
        read = kept = 0
        missed: dict[str, set[str]] = {}
        for row in rows:
            read += 1
            if self._fits(row):
                kept += 1
                yield row
                if kept == self.limit:
                    return
            elif not kept:
                self._note(row, missed)
        if read and not kept:
            raise ConfigError(f"none of the {read:,} rows is what was asked for", hint=_there(missed))

    def _note(self, row: DatasetRow, missed: dict[str, set[str]]) -> None:
        for name, values in self.wanted.items():
            if not _values(row, name) & values:
                missed.setdefault(f"--where {name}=", set()).update(_values(row, name))
        if self.min_reward is not None:
            missed.setdefault("--min-reward ", set()).add("none" if row.reward is None else f"{row.reward:g}")

    def _fits(self, row: DatasetRow) -> bool:
        if self.min_reward is not None and (row.reward is None or row.reward < self.min_reward):
            return False
        return all(_values(row, name) & values for name, values in self.wanted.items())


def labels_of(text: str) -> frozenset[SampleLabel]:
    """Conversations named with commas between. Raises ConfigError."""
    try:
        labels = frozenset(SampleLabel(part.strip()) for part in text.split(","))
    except ValueError:
        raise ConfigError(
            f"--threads {text!r} is no list of main, fork and side", hint="write --threads main"
        ) from None
    return labels


def _there(missed: Mapping[str, set[str]]) -> str:
    told = []
    for name, values in missed.items():
        first = [value[:40] or "nothing" for value in sorted(values)[:_SHOWN]]
        more = f" and {len(values) - _SHOWN} more" if len(values) > _SHOWN else ""
        told.append(f"for {name} there is {', '.join(first)}{more}")
    return "; ".join(told)


def _values(row: DatasetRow, name: str) -> frozenset[str]:
    if name == "tag":
        return frozenset(row.tags)
    value = getattr(row, name)
    return frozenset({"" if value is None else str(getattr(value, "value", value))})
