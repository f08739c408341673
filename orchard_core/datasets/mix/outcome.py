"""What came of a mix, counted: for the manifest, and for whoever asks before there is one."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field, JsonValue

import orchard_core
from orchard_core.datasets.mix.filters import Drop
from orchard_core.datasets.mix.index import Index
from orchard_core.datasets.mix.plan import Plan
from orchard_core.datasets.mix.reading import kind_of
from orchard_core.datasets.mix.recipe import MixRecipe, shares_of
from orchard_core.datasets.mix.scan import Scan
from orchard_core.datasets.mix.select import FIELDS
from orchard_core.datasets.store.manifest import FilterReport, Made, SourceReport
from orchard_core.types.base import Record


class Example(Record):
    """A row that was dropped."""

    source: str
    """Its source."""
    reason: str
    """The filter."""
    row: int
    """Its place in the source, from 0."""
    id: str
    """Its id."""
    why: str
    """In words."""


class StratumCount(Record):
    """Rows that agree in split, source and every field of `stratify`."""

    split: str
    """The split."""
    source: str
    """The source."""
    values: Mapping[str, str] = Field(default_factory=dict)
    """By field of `stratify`."""
    rows: int
    """How many there are to draw from."""
    taken: int
    """How many are in the mix, repeats included."""


class MixOutcome(Record):
    """Everything a mix kept and dropped, and why."""

    rows: int
    """In the dataset, repeats included."""
    repeats: int
    """Of these, rows that stand there again."""
    splits: Mapping[str, int]
    """Rows of each split."""
    sources: tuple[SourceReport, ...]
    """In the recipe's order; `read` = different rows kept + all rows dropped."""
    examples: tuple[Example, ...] = ()
    """The first rows that each filter dropped."""
    strata: tuple[StratumCount, ...] = ()
    """What was drawn from, and how much of it."""
    notes: tuple[str, ...] = ()
    """What could not be met."""


def outcome(recipe: MixRecipe, jobs: Sequence[Scan], plan: Plan) -> MixOutcome:
    """Count it all."""
    kept, gone = plan.kept(), plan.gone()
    asked = shares_of(recipe) or {}
    reports, examples = [], []
    for job in jobs:
        index = Index(job.index)
        state, drops = index.state(), Counter(index.drops())
        examples += [
            Example(source=job.source.name, reason=drop.reason, row=drop.ord, id=drop.id, why=drop.why)
            for drop in index.examples()
        ]
        index.close()
        drops.update(gone.get(job.number, {}))
        reports.append(
            SourceReport(
                name=job.source.name, path=job.source.path, kind=_kind(job),
                weight=asked.get(job.source.name),
                digest=state.digest, read=state.read, kept=kept.get(job.number, (0, 0))[0],
                dropped={drop.value: drops[drop.value] for drop in Drop if drops[drop.value]},
            )
        )  # fmt: skip
    rows, different = (sum(pair[place] for pair in kept.values()) for place in (0, 1))
    return MixOutcome(
        rows=rows, repeats=rows - different, splits=plan.splits(), sources=tuple(reports),
        examples=tuple(examples), strata=tuple(_strata(recipe, jobs, plan)), notes=tuple(plan.notes()),
    )  # fmt: skip


def _kind(job: Scan) -> str:
    found = kind_of(job.source)
    return found.format or found.kind.value


def _strata(recipe: MixRecipe, jobs: Sequence[Scan], plan: Plan) -> list[StratumCount]:
    asked = {stratum.by for stratum in recipe.stratify}
    return [
        StratumCount(
            split=split, source=jobs[source].source.name, rows=rows, taken=taken,
            values={name: value for name, value in zip(FIELDS, values, strict=True) if name in asked},
        )
        for split, source, *values, rows, taken in plan.strata()
    ]  # fmt: skip


def made(recipe: MixRecipe, text: str, told: MixOutcome) -> Made:
    """For the manifest."""
    resolved = recipe.model_dump(mode="json")
    return Made(
        by="orchard data mix", recipe=resolved, recipe_digest=digest_of(recipe), recipe_text=text,
        seed=recipe.seed, sources=told.sources, filters=tuple(_filters(recipe, told)), notes=told.notes,
        versions=versions(),
    )  # fmt: skip


def digest_of(recipe: MixRecipe) -> str:
    """Hash of the resolved recipe."""
    return hashlib.sha256(resolved(recipe)).hexdigest()


def resolved(recipe: MixRecipe) -> bytes:
    """The whole recipe, defaults included, as JSON."""
    import json

    return json.dumps(recipe.model_dump(mode="json"), indent=2).encode()


def versions() -> dict[str, str]:
    """What decides the bytes of a dataset beside recipe and sources."""
    import pyarrow  # type: ignore[import-untyped]
    import zstandard

    return {
        "orchard-core": orchard_core.__version__,
        "pyarrow": pyarrow.__version__,
        "zstandard": zstandard.__version__,
    }


def _filters(recipe: MixRecipe, told: MixOutcome) -> list[FilterReport]:
    settings = _settings(recipe)
    return [
        FilterReport(
            name=drop.value, settings=settings.get(drop, {}),
            dropped=sum(source.dropped.get(drop.value, 0) for source in told.sources),
        )
        for drop in Drop
    ]  # fmt: skip


def _settings(recipe: MixRecipe) -> dict[Drop, dict[str, JsonValue]]:
    asked: dict[str, Any] = recipe.filters.model_dump(mode="json")
    plain = {drop: {"on": asked[drop.value]} for drop in Drop if isinstance(asked.get(drop.value), bool)}
    plain[Drop.UNPARSABLE] |= {"format_errors": asked["format_errors"]}
    return {
        **plain,
        Drop.BAD_ROW: {"on_bad_row": recipe.on_bad_row},
        Drop.OVER_LONG: {"max_tokens": asked["max_tokens"]},
        Drop.NEAR_DUPLICATES: asked["near_duplicates"] or {"on": False},
        Drop.LEAKS: recipe.leaks.model_dump(mode="json"),
    }
