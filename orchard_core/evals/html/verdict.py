"""What one attempt came to, as a letter, a word and a colour."""

from __future__ import annotations

from enum import StrEnum

from orchard_core.evals.matrix_report import RolloutLine
from orchard_core.types.rollout import Attribution


class Verdict(StrEnum):
    """Passed, or whose doing it is that it did not. The value is the class of its colour."""

    PASSED = "passed"
    AGENT = "agent"
    MODEL = "model"
    HARNESS = "harness"
    INFRASTRUCTURE = "infra"
    TASK = "task"
    USER = "user"
    UNFINISHED = "open"

    @property
    def letter(self) -> str:
        """Stands beside the colour, which is never alone."""
        return _LETTER[self]

    @property
    def words(self) -> str:
        """For the legend."""
        return _WORDS[self]


_LETTER = {
    Verdict.PASSED: "✓",
    Verdict.AGENT: "A",
    Verdict.MODEL: "M",
    Verdict.HARNESS: "H",
    Verdict.INFRASTRUCTURE: "I",
    Verdict.TASK: "T",
    Verdict.USER: "U",
    Verdict.UNFINISHED: "·",
}
_WORDS = {
    Verdict.PASSED: "passed",
    Verdict.AGENT: "the agent's doing",
    Verdict.MODEL: "the model server's",
    Verdict.HARNESS: "the harness's",
    Verdict.INFRASTRUCTURE: "the infrastructure's",
    Verdict.TASK: "the task's",
    Verdict.USER: "stopped by a person",
    Verdict.UNFINISHED: "not finished",
}
_BLAMED = {
    Attribution.AGENT: Verdict.AGENT,
    Attribution.MODEL: Verdict.MODEL,
    Attribution.HARNESS: Verdict.HARNESS,
    Attribution.INFRASTRUCTURE: Verdict.INFRASTRUCTURE,
    Attribution.TASK: Verdict.TASK,
    Attribution.USER: Verdict.USER,
}


def judge(line: RolloutLine, threshold: float) -> Verdict:
    """A score of at least the threshold has passed, whatever else happened."""
    if line.outcome is None:
        return Verdict.UNFINISHED
    if line.score is not None and line.score >= threshold:
        return Verdict.PASSED
    # A score below the threshold is the agent's doing, also where something else ended the rollout.
    if line.score is not None or line.attribution is None:
        return Verdict.AGENT
    return _BLAMED[line.attribution]
