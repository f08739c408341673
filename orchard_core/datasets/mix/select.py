"""Which rows are taken, how often, and in which order: a function of the index, the recipe and the seed."""

from __future__ import annotations

import sqlite3
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from orchard_core.datasets.mix.draw import drawn
from orchard_core.datasets.mix.filters import Drop
from orchard_core.datasets.mix.quotas import Marginal, fitted, quotas, rounded
from orchard_core.datasets.mix.recipe import MixExhausted, MixRecipe, MixStratum, named_sources, shares_of

_SCHEMA = """
CREATE TABLE cells (
    cell INTEGER PRIMARY KEY, part TEXT, source INTEGER, harness TEXT, model TEXT, taskset TEXT, outcome TEXT,
    count INTEGER, quota INTEGER
);
CREATE TABLE chosen (part INTEGER, place INTEGER, seq INTEGER, copy INTEGER);
CREATE TABLE plan (
    number INTEGER PRIMARY KEY, part INTEGER, seq INTEGER, copy INTEGER, name TEXT, shard INTEGER
);
"""
FIELDS = ("harness", "model", "taskset", "outcome")
"""What rows can be stratified by beside their source, in the order of `cells`."""


def select(base: sqlite3.Connection, recipe: MixRecipe) -> None:
    """Fill `plan` from `rows`, whose `part` names each row's split. Raises ConfigError for shares that cannot
    be had."""
    for statement in _SCHEMA.split(";"):
        base.execute(statement)
    _make_cells(base, recipe)
    _set_quotas(base, recipe)
    _choose(base, recipe)
    _order(base, recipe)


def _make_cells(base: sqlite3.Connection, recipe: MixRecipe) -> None:
    """One cell for each source, split and combination of the fields that `stratify` names."""
    asked = {stratum.by for stratum in recipe.stratify}
    fields = ", ".join(name if name in asked else f"'' AS {name}" for name in FIELDS)
    keys = ", ".join(("part", "source", *(name for name in FIELDS if name in asked)))
    base.execute(
        "INSERT INTO cells (part, source, harness, model, taskset, outcome, count) "  # noqa: S608 - ours
        f"SELECT part, source, {fields}, count(*) FROM rows WHERE gone IS NULL "
        f"GROUP BY {keys} ORDER BY {keys}"
    )
    same = " AND ".join(
        f"c.{name} = rows.{name}" for name in ("part", "source", *(n for n in FIELDS if n in asked))
    )
    base.execute("CREATE INDEX by_cell ON cells (part, source, harness, model, taskset, outcome)")
    base.execute(
        f"UPDATE rows SET cell = (SELECT cell FROM cells AS c WHERE {same}) WHERE gone IS NULL"  # noqa: S608
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cell:
    number: int
    values: Mapping[str, Hashable]
    count: int


def _set_quotas(base: sqlite3.Connection, recipe: MixRecipe) -> None:
    shares = recipe.splits.shares
    totals = rounded(list(shares.values()), recipe.rows.total) if recipe.rows.total is not None else None
    for place, part in enumerate(shares):
        cells = list(_cells(base, part, recipe))
        found = _quotas(cells, recipe, total=None if totals is None else totals[place], first=place == 0)
        base.executemany(
            "UPDATE cells SET quota = ? WHERE cell = ?",
            ((quota, cell.number) for quota, cell in zip(found, cells, strict=True)),
        )


def _cells(base: sqlite3.Connection, part: str, recipe: MixRecipe) -> Iterator[_Cell]:
    names = [source.name for source in named_sources(recipe)]
    rows = base.execute(
        "SELECT cell, source, harness, model, taskset, outcome, count FROM cells "
        "WHERE part = ? ORDER BY cell",
        (part,),
    )
    for cell, source, *values, count in rows:
        told: dict[str, Hashable] = dict(zip(FIELDS, values, strict=True))
        yield _Cell(number=cell, values={**told, "source": names[source]}, count=count)


def _quotas(cells: Sequence[_Cell], recipe: MixRecipe, *, total: int | None, first: bool) -> list[int]:
    counts = [cell.count for cell in cells]
    marginals = list(_marginals(cells, recipe, strict=first))
    exhausted = recipe.rows.exhausted
    if exhausted is MixExhausted.ALL and not first:
        exhausted = MixExhausted.WITHOUT_REPLACEMENT
    order: dict[Hashable, int] = {}
    return quotas(
        counts,
        fitted(counts, marginals),
        [order.setdefault(cell.values["source"], len(order)) for cell in cells],
        total=total,
        exhausted=exhausted,
        copies=recipe.rows.max_repeats,
    )


def _marginals(cells: Sequence[_Cell], recipe: MixRecipe, *, strict: bool) -> Iterator[Marginal]:
    """What is asked of these cells. Where not `strict`, values without rows are left out of it."""
    strict = strict and recipe.rows.exhausted is not MixExhausted.WITHOUT_REPLACEMENT
    if (weights := shares_of(recipe)) is not None:
        yield _marginal("source", cells, weights, strict=strict)
    for stratum in recipe.stratify:
        if stratum.shares != "natural":
            yield _marginal(stratum.by, cells, _wanted(stratum, cells), strict=strict)


def _marginal(field: str, cells: Sequence[_Cell], shares: Mapping[str, float], *, strict: bool) -> Marginal:
    labels = [cell.values[field] for cell in cells]
    there = {label for label, cell in zip(labels, cells, strict=True) if cell.count}
    kept = shares if strict else {label: share for label, share in shares.items() if label in there}
    total = sum(kept.values())
    return Marginal(
        field=field, labels=labels, shares={label: share / total for label, share in kept.items() if total}
    )


def _wanted(stratum: MixStratum, cells: Sequence[_Cell]) -> Mapping[str, float]:
    """Shares of the values of a field; those that are not named share the rest as they come."""
    counts: dict[str, int] = {}
    for cell in cells:
        value = str(cell.values[stratum.by])
        counts[value] = counts.get(value, 0) + cell.count
    if not isinstance(stratum.shares, dict):
        return dict.fromkeys(counts, 1 / max(1, len(counts)))
    rest = max(0.0, 1 - sum(stratum.shares.values()))
    others = {value: count for value, count in counts.items() if value not in stratum.shares}
    total = sum(others.values())
    return {**stratum.shares, **{value: rest * count / total for value, count in others.items()}}


def _choose(base: sqlite3.Connection, recipe: MixRecipe) -> None:
    """Each cell gives its rows in the order of their draw, as often as the quota goes through them."""
    base.execute("CREATE INDEX by_draw ON rows (cell, draw, seq) WHERE gone IS NULL")
    parts = {name: place for place, name in enumerate(recipe.splits.shares)}
    found = base.execute(
        "SELECT rows.seq, rows.draw, cells.part, cells.quota, cells.count, "
        "row_number() OVER (PARTITION BY rows.cell ORDER BY rows.draw, rows.seq) - 1 "
        "FROM rows JOIN cells USING (cell) WHERE rows.gone IS NULL ORDER BY rows.cell, rows.draw, rows.seq"
    )

    def chosen() -> Iterator[tuple[int, int, int, int]]:
        for seq, draw, part, quota, count, rank in found:
            for copy in range(quota // count + (rank < quota % count)):
                place = drawn(recipe.seed, "place", draw, copy) if recipe.shuffle else seq
                yield parts[part], place, seq, copy

    base.executemany("INSERT INTO chosen VALUES (?, ?, ?, ?)", chosen())
    base.execute("CREATE INDEX by_seq ON chosen (seq)")
    base.execute(
        "UPDATE rows SET gone = ? WHERE gone IS NULL AND seq NOT IN (SELECT seq FROM chosen)",
        (Drop.NOT_DRAWN.value,),
    )


def _order(base: sqlite3.Connection, recipe: MixRecipe) -> None:
    """Places, names and shards. A row that stands in the dataset for the n-th time is named `ID~n`."""
    base.execute("CREATE INDEX by_place ON chosen (part, place, seq, copy)")
    found = base.execute(
        "SELECT chosen.part, chosen.seq, chosen.copy, rows.id, rows.size, "
        "row_number() OVER (PARTITION BY rows.id ORDER BY chosen.seq, chosen.copy) "
        "FROM chosen JOIN rows USING (seq) ORDER BY chosen.part, chosen.place, chosen.seq, chosen.copy"
    )
    base.executemany("INSERT INTO plan VALUES (NULL, ?, ?, ?, ?, ?)", _sharded(found, recipe))
    base.execute("CREATE INDEX by_shard ON plan (shard, number)")
    base.execute("CREATE INDEX by_name ON plan (name)")
    _part_names(base)


def _sharded(
    found: Iterator[tuple[int, int, int, str, int, int]] | sqlite3.Cursor, recipe: MixRecipe
) -> Iterator[tuple[int, int, int, str, int]]:
    shard, rows, size, held = -1, 0, 0, -1
    most = recipe.shards.mb * 1e6
    for part, seq, copy, name, own, times in found:
        if part != held or rows >= recipe.shards.rows or (rows and size + own > most):
            shard, rows, size, held = shard + 1, 0, 0, part
        rows, size = rows + 1, size + own
        yield part, seq, copy, name if times == 1 else f"{name}~{times}", shard


def _part_names(base: sqlite3.Connection) -> None:
    """A row may be called what another one is to be called: that one gets its place in the mix added."""
    twice = "SELECT name FROM plan GROUP BY name HAVING count(*) > 1"
    while base.execute(twice).fetchone():
        base.execute(
            "UPDATE plan SET name = name || '~' || number "  # noqa: S608 - no value in it
            f"WHERE name IN ({twice}) AND name != (SELECT id FROM rows WHERE rows.seq = plan.seq)"
        )
