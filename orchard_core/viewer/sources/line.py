"""One rollout or row as a list shows it."""

from __future__ import annotations

from dataclasses import dataclass

from orchard_core.types.rollout import Attribution, Outcome

PASSED = 1.0
"""A score of at least this has passed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """What is known without reading the conversation."""

    source: str
    """Key of the run or dataset it lies in."""
    key: str
    """What names it in an address: safe there, unique in its source and the same every time."""
    id: str
    """The id, as it was recorded."""
    task: str
    """The task's id."""
    attempt: int
    """From 0."""
    harness: str
    """As the user named it."""
    model: str
    """As the user named it."""
    taskset: str
    """As the user named it."""
    outcome: Outcome | None
    """How it ended; None: unknown."""
    attribution: Attribution | None
    """Whose doing that is."""
    score: float | None
    """None: none was had."""
    turns: int
    """Answers of the model."""
    tokens: int
    """Tokens of all its calls, or of the row."""
    cost_usd: float | None = None
    """US dollars; None: unknown."""
    seconds: float | None = None
    """From start to record; None: unknown."""
    tags: tuple[str, ...] = ()
    """The task's."""
    error: str = ""
    """Class of the error that decided the outcome."""
    label: str = ""
    """Which conversation of its rollout a row is."""
    split: str = ""
    """The split a row belongs to."""
    mixed_from: str = ""
    """The source of the mix that a row came by."""
    credit: tuple[str, ...] = ()
    """Names of the credits that were assigned to it."""
    number: int = 0
    """Place in its source."""
    mark: str = ""
    """Changes when the record does."""

    @property
    def address(self) -> str:
        """Path of its page."""
        return f"/{self.source}/{self.key}"

    @property
    def passed(self) -> str:
        """`passed`, `failed` or `none`, by its score."""
        if self.score is None:
            return "none"
        return "passed" if self.score >= PASSED else "failed"
