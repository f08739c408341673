"""Whether a row meets a source's `where`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import translate
from functools import lru_cache

from orchard_core.datasets.mix.recipe import MixWhere
from orchard_core.types.dataset import DatasetRow

UNKNOWN = "unknown"
"""What the outcome of a row is called that tells none."""


def outcome_of(row: DatasetRow) -> str:
    """Its name."""
    return row.outcome.value if row.outcome is not None else UNKNOWN


def unmet(row: DatasetRow, where: MixWhere) -> str:
    """The first condition that the row does not meet, as words; empty: it meets all."""
    for name, globs, value in (
        ("harness", where.harness, row.harness),
        ("model", where.model, row.model),
        ("taskset", where.taskset, row.taskset),
        ("task", where.task, row.task),
        ("outcome", where.outcome, outcome_of(row)),
        ("label", where.label, row.label.value),
    ):
        if globs and not _pattern(globs).match(value):
            return f"its {name} is {value!r}"
    if where.tags and not any(map(_pattern(where.tags).match, row.tags)):
        return "none of its tags matches"
    return _unmet_score(row.reward, where)


def _unmet_score(score: float | None, where: MixWhere) -> str:
    low, high = where.score_at_least, where.score_at_most
    if low is None and high is None:
        return ""
    if score is None:
        return "it has no score"
    below, above = low is not None and score < low, high is not None and score > high
    return f"its score is {score:g}" if below or above else ""


@lru_cache(maxsize=1024)
def _pattern(globs: Sequence[str]) -> re.Pattern[str]:
    return re.compile("|".join(map(translate, globs)))
