"""What a leak check is asked, and what it says."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from orchard_core.types.base import Record


class LeakSettings(Record):
    """What counts as a leak.

    The run lengths are those of GPT-3's decontamination (Brown et al., "Language Models are Few-Shot
    Learners", 2020, appendix C): 13 words, 8 at the least for short texts. There one common run was enough;
    here the share of a benchmark task's words that stand in common runs decides, as in Llama 2 (Touvron et
    al., 2023, appendix A.6), so that one quoted sentence is no leak.
    """

    words: int = Field(default=13, ge=2)
    """Words of a run, for benchmark texts of at least twice as many."""
    short_words: int = Field(default=8, ge=2)
    """Words of a run for shorter ones. A text of fewer words is found when it is equal, or nearly so, as a
    whole."""
    share: float = Field(default=0.5, gt=0, le=1)
    """Share of the words of a benchmark task from which a text that holds them is a leak."""
    near: float | None = Field(default=0.8, gt=0, le=1)
    """Jaccard resemblance from which two instructions are near duplicates; none: not asked."""
    common: int = Field(default=2, ge=1)
    """A run that stands in more of the benchmark's texts than this is its boilerplate and is not counted."""
    conversations: bool = False
    """Look at whole conversations as well, not only at the tasks' instructions."""


class LeakKind(StrEnum):
    """How a leak was found; the strongest ground comes first."""

    ID = "id"
    """The same task id in the same task set; or the same id of at least 12 characters, with a digit, in
    another."""
    DIGEST = "digest"
    """The same content hash of everything that defines the task."""
    TEXT = "text"
    """The same instruction, marks, case and blanks aside."""
    NEAR = "near"
    """A near-duplicate instruction."""
    WORDS = "words"
    """Enough of the benchmark task's words stand in the text, in runs."""


class Leak(Record):
    """One row, or task, and the benchmark task that it gives away."""

    row: str = ""
    """The row's id; empty where a task was looked at alone."""
    taskset: str
    """The row's task set."""
    task: str
    """The row's task."""
    benchmark: str
    """The benchmark as the user named it."""
    benchmark_task: str
    """Its task."""
    kind: LeakKind
    """How it was found."""
    share: float
    """How much: 1 for the same id, digest or text, the resemblance, or the share of the benchmark's words."""
    where: str = "task"
    """What was looked at: `task`, the instruction, or `messages`, the conversation."""
    text: str = ""
    """The beginning of what both have, at most 200 characters, in normalised words."""


class Checked(Record):
    """One benchmark that was checked against."""

    name: str
    """As the user named it."""
    tasks: int
    """Its tasks."""
    notes: tuple[str, ...] = ()
    """What of it could not be checked, a sentence each."""


class LeakReport(Record):
    """What a check of rows found."""

    benchmarks: tuple[Checked, ...]
    """What was checked against."""
    settings: LeakSettings
    """What counted as a leak."""
    rows: int
    """Rows looked at."""
    tasks: int
    """Distinct tasks among them."""
    leaks: tuple[Leak, ...] = ()
    """A leak for each leaking row, in the rows' order."""

    @property
    def clean(self) -> bool:
        """Nothing was found."""
        return not self.leaks
