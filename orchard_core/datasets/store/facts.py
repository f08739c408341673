"""What the small columns of a row tell: enough to count and to choose, without its messages or ids."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from orchard_core.datasets.store.unpack import rows_of
from orchard_core.types.dataset import DatasetRow
from orchard_core.types.rollout import Attribution, Outcome
from orchard_core.types.sample import SampleLabel


@dataclass(frozen=True, slots=True, kw_only=True)
class RowFacts:
    """One row without what is large in it; fields as in DatasetRow."""

    id: str
    """The row's id."""
    rollout: str
    """Its rollout's."""
    label: SampleLabel
    """Which conversation it is."""
    harness: str
    """The harness."""
    model: str
    """The model."""
    taskset: str
    """The task set."""
    task: str
    """The task's id."""
    task_text: str
    """The task's instruction."""
    tags: tuple[str, ...]
    """The task's tags."""
    attempt: int
    """Which attempt."""
    seed: int
    """The rollout's seed."""
    outcome: Outcome | None
    """How it ended."""
    attribution: Attribution | None
    """Whose doing that is."""
    reward: float | None
    """The score."""
    split: str
    """Its split."""
    source: str
    """Its mixing source."""
    credit: str
    """What assigned credit."""
    token_count: int
    """Tokens."""
    token_count_exact: bool
    """Not estimated."""
    turns: int
    """A: assistant messages."""
    trained_turns: int
    """Those with mask 1."""


COLUMNS = (
    "id", "rollout", "label", "harness", "model", "taskset", "task", "task_text", "tags", "attempt", "seed",
    "outcome", "attribution", "reward", "split", "source", "credit", "token_count", "token_count_exact",
    "turns",
)  # fmt: skip
READ = (*COLUMNS, "mask")
"""What is read of a shard."""


def facts_of(row: DatasetRow) -> RowFacts:
    """Those of a row."""
    return RowFacts(**{name: getattr(row, name) for name in COLUMNS}, trained_turns=sum(map(bool, row.mask)))


def unpack_facts(table: Any, *, path: str, first: int) -> Iterator[RowFacts]:
    """Those of a table's rows, which starts at row `first` of a file. Raises DatasetCorrupt."""
    for *row, mask in rows_of(table, READ, path=path, first=first):
        yield RowFacts(**dict(zip(COLUMNS, row, strict=True)), trained_turns=sum(map(bool, mask)))
