"""What a mix is made of, as a YAML file or as flags."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from math import isfinite
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator

from orchard_core.datasets.leaks.report import LeakSettings
from orchard_core.datasets.mix.filters import MixFilters
from orchard_core.types.base import Record
from orchard_core.types.sample import SampleLabel

Share = Annotated[float, Field(ge=0, allow_inf_nan=False)]
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_SPLIT = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


def _listed(value: Any) -> Any:
    """One pattern is written without brackets."""
    return (value,) if isinstance(value, str) else value


Globs = Annotated[tuple[str, ...], BeforeValidator(_listed)]


class MixWhere(Record):
    """Which rows of a source are taken: those that meet every condition. Names are globs, case counts."""

    harness: Globs = ()
    """Harnesses; empty: any. So are the others."""
    model: Globs = ()
    """Models."""
    taskset: Globs = ()
    """Task sets."""
    task: Globs = ()
    """Task ids."""
    tags: Globs = ()
    """The task has a tag that one of these matches."""
    outcome: Globs = ()
    """Outcomes, such as `completed`; `unknown` for rows that tell none."""
    label: Globs = ()
    """Which conversations, of those that `threads` reads: `main`, `fork`, `side`."""
    score_at_least: float | None = Field(default=None, allow_inf_nan=False)
    """Lowest score; a row without a score is then not taken."""
    score_at_most: float | None = Field(default=None, allow_inf_nan=False)
    """Highest score; a row without a score is then not taken."""


class MixSource(Record):
    """Where rows come from."""

    path: str
    """A run, a matrix, a dataset, or a file or directory of any known format."""
    name: str = ""
    """Stands in each row and in the manifest; empty: the path's last part, numbered when two are alike."""
    format: str = ""
    """Format of foreign files; empty: recognised."""
    weight: Share | None = None
    """Its part of the mix beside the other sources' weights; when no source has one, all rows are taken as
    they come. Where some have one, those without count 1."""
    where: MixWhere = MixWhere()
    """Which of its rows."""
    threads: tuple[SampleLabel, ...] = (SampleLabel.MAIN, SampleLabel.FORK)
    """Which conversations of a rollout are read."""
    credit: str = ""
    """A credit directory, or the name of one in the run (in each cell of a matrix), such as `judge`. Rows of
    rollouts without a credit there are left out, counted as `uncredited`."""
    max_rows: int | None = Field(default=None, ge=1)
    """Reading stops once so many rows have met `where` and passed the filters; what follows is not read."""

    @field_validator("name")
    @classmethod
    def _plain(cls, name: str) -> str:
        if name and not _NAME.fullmatch(name):
            raise ValueError("letters, digits, dots, dashes and underscores only")
        return name


class MixExhausted(StrEnum):
    """What happens when a source or stratum has fewer rows than its share asks for."""

    FIRST = "first_exhausted"
    """The mix ends there: shares hold exactly, and other rows are left over."""
    ALL = "all_exhausted"
    """Its rows are repeated until every row was used, or `total` is reached. The mix ends where a row would
    be needed more often than `max_repeats`: shares hold exactly."""
    WITHOUT_REPLACEMENT = "all_exhausted_without_replacement"
    """Others go on, in proportion to their shares: no row twice, and shares no longer hold."""


class MixRows(Record):
    """How many."""

    total: int | None = Field(default=None, ge=1)
    """Rows of all splits together; none: as many as the shares allow."""
    exhausted: MixExhausted = MixExhausted.FIRST
    """The names are those of `datasets.interleave_datasets`."""
    max_repeats: int = Field(default=4, ge=1)
    """How often a row may stand in the first split, the first time included. Other splits repeat nothing."""


class MixStratum(Record):
    """Shares of the values of one field."""

    by: Literal["harness", "model", "taskset", "outcome", "source"]
    """The field."""
    shares: Literal["equal", "natural"] | dict[str, Share] = "equal"
    """`equal`, as they come, or a share for each value; values not named share what is left as they come."""

    @field_validator("shares")
    @classmethod
    def _at_most_one(cls, shares: str | dict[str, float]) -> str | dict[str, float]:
        if isinstance(shares, dict) and not 0 < sum(shares.values()) <= 1 + 1e-9:
            raise ValueError("shares must add up to more than 0 and at most 1")
        return shares


class MixShards(Record):
    """Size of the files. A shard ends before the row that would pass either bound."""

    rows: int = Field(default=20_000, ge=1)
    """Rows."""
    mb: float = Field(default=256.0, gt=0, allow_inf_nan=False)
    """Megabytes of text and token ids before compression."""


class MixSplits(Record):
    """Shares of the tasks: all rows of one task, and of its near-duplicates, stand in one split."""

    shares: dict[str, Annotated[float, Field(gt=0, allow_inf_nan=False)]] = Field(
        default_factory=lambda: {"train": 1.0}
    )
    """By split, the first one being what is trained on; they are brought to a sum of 1."""
    similar_tasks: float | None = Field(default=0.8, gt=0, le=1)
    """Tasks whose texts are at least so similar (Jaccard) stay together; none: only equal ones do."""

    @field_validator("shares")
    @classmethod
    def _named(cls, shares: dict[str, float]) -> dict[str, float]:
        for name in shares:
            if not _SPLIT.fullmatch(name):
                raise ValueError(f"{name!r} names no split: letters, digits and underscores only")
        if not shares:
            raise ValueError("name at least one split")
        if not isfinite(sum(shares.values())):
            raise ValueError("the shares are too large to be added up")
        return shares


class MixLeaks(LeakSettings):
    """Rows whose task stands in a benchmark that is to stay unseen."""

    against: Globs = ()
    """Task sets, datasets, or files of texts (`.txt`, `.jsonl`); empty: nothing is checked."""
    action: Literal["drop", "refuse"] = "drop"
    """`drop` leaves such rows out and counts them; `refuse` ends the mix at the first one, for sources that
    are thought to be clean."""


class MixRecipe(Record):
    """One mix. Paths are relative to where the command is run."""

    sources: tuple[MixSource, ...] = Field(min_length=1)
    """Where rows come from; what stands in two sources is kept from the first."""
    seed: int = 0
    """What is drawn, in which order, and into which split."""
    rows: MixRows = MixRows()
    """How many, and what happens when a source is exhausted."""
    stratify: tuple[MixStratum, ...] = ()
    """Shares by field; with several, and with weights, all hold at once, as near to the natural mix as can
    be."""
    filters: MixFilters = MixFilters()
    """What is left out."""
    splits: MixSplits = MixSplits()
    """Splits by task."""
    leaks: MixLeaks = MixLeaks()
    """Benchmarks to stay clear of."""
    shards: MixShards = MixShards()
    """Size of the files."""
    shuffle: bool = True
    """Rows in an order drawn by the seed; else by source and place in it."""
    on_bad_row: Literal["stop", "skip"] = "stop"
    """What a row that cannot be read does: stop with the error, or be counted as `bad_row`."""

    @model_validator(mode="after")
    def _sound(self) -> Self:
        names = [source.name for source in self.sources if source.name]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"two sources are named {name!r}")
        weights = [source.weight for source in self.sources if source.weight is not None]
        if len(weights) == len(self.sources) and not sum(weights):
            raise ValueError("every source has weight 0")
        if not isfinite(sum(weights)):
            raise ValueError("the weights are too large to be added up")
        fields = [stratum.by for stratum in self.stratify]
        if len(set(fields)) < len(fields):
            raise ValueError("stratify names a field twice")
        if "source" in fields and weights:
            raise ValueError("give sources either weights or a share in stratify, not both")
        return self


def named_sources(recipe: MixRecipe) -> list[MixSource]:
    """The sources, each with a name of its own."""
    taken = {source.name for source in recipe.sources if source.name}
    named = []
    for source in recipe.sources:
        name = source.name or _free(_stem(source.path), taken)
        taken.add(name)
        named.append(source.model_copy(update={"name": name}))
    return named


def _stem(path: str) -> str:
    last = path.rstrip("/").rpartition("/")[2]
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", last.removesuffix(".jsonl").removesuffix(".json")).lstrip("._-")
    return plain or "source"


def _free(name: str, taken: set[str]) -> str:
    found, number = name, 2
    while found in taken:
        found, number = f"{name}-{number}", number + 1
    return found


def shares_of(recipe: MixRecipe) -> Mapping[str, float] | None:
    """Share of each source, by name, with sum 1; None when the mix is natural."""
    sources = named_sources(recipe)
    if all(source.weight is None for source in sources):
        return None
    weights = {source.name: 1.0 if source.weight is None else source.weight for source in sources}
    total = sum(weights.values())
    return {name: weight / total for name, weight in weights.items()}
