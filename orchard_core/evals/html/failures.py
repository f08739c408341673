"""How the rollouts of each cell ended, and by whose doing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orchard_core.evals.html.view import CellView
from orchard_core.types.rollout import Attribution, Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureRow:
    """One ending."""

    outcome: Outcome | None
    """How they ended; None: not finished."""
    attribution: Attribution | None
    """Whose doing that is."""
    passed: bool
    """They passed all the same."""
    counts: tuple[int, ...]
    """Rollouts by cell."""


def failure_rows(cells: Sequence[CellView]) -> tuple[FailureRow, ...]:
    """What passed first, then every ending that is there, the most frequent first."""
    found: dict[tuple[Outcome | None, Attribution | None, bool], list[int]] = {}
    for place, view in enumerate(cells):
        for rollout in view.rollouts:
            line = rollout.line
            key = (line.outcome, line.attribution, rollout.verdict.value == "passed")
            found.setdefault(key, [0] * len(cells))[place] += 1
    ranked = sorted(found.items(), key=lambda item: (not item[0][2], item[0][0] is None, -sum(item[1])))
    return tuple(
        FailureRow(outcome=outcome, attribution=attribution, passed=passed, counts=tuple(counts))
        for (outcome, attribution, passed), counts in ranked
    )
