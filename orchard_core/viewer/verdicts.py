"""What a line came to, told as the report tells it."""

from __future__ import annotations

from orchard_core.evals.html.verdict import Verdict, judge
from orchard_core.evals.matrix_report import RolloutLine
from orchard_core.viewer.sources.line import PASSED, Line


def verdict_of(line: Line) -> Verdict:
    """Passed, or whose doing it is that it did not."""
    told = RolloutLine(
        id=line.id, attempt=line.attempt, outcome=line.outcome, attribution=line.attribution, score=line.score
    )
    if line.score is not None and line.outcome is None:  # a row of a format that tells the score alone
        return Verdict.PASSED if line.score >= PASSED else Verdict.AGENT
    return judge(told, PASSED)
