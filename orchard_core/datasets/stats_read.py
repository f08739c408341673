"""Rows as statistics need them, from any path; of a dataset of ours only the columns that are counted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from orchard_core.datasets.reading import Source, SourceKind, source_rows
from orchard_core.datasets.rows import DEFAULT_THREADS
from orchard_core.datasets.store.arrays import absent, elements, view
from orchard_core.datasets.store.arrow import np
from orchard_core.datasets.store.facts import READ, RowFacts, facts_of, unpack_facts
from orchard_core.datasets.store.reader import Dataset, open_dataset
from orchard_core.types.dataset import DatasetRow
from orchard_core.types.sample import SampleLabel

_COLUMNS = (*READ, "tokens.mask", "tokens.answers")


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A row, without what is large in it."""

    facts: RowFacts
    """Its small fields."""
    tokens: int
    """Ids that were recorded; 0: none were."""
    trained_tokens: int
    """Those that are trained on: sampled, in an answer whose message has mask 1."""

    @property
    def token_count(self) -> int:
        """Of the whole row."""
        return self.facts.token_count


def measured(source: Source, *, threads: frozenset[SampleLabel] = DEFAULT_THREADS) -> Iterator[Measured]:
    """Every row of a path. Raises as `read_rows`."""
    if source.kind is SourceKind.DATASET:
        return _of_dataset(open_dataset(source.path))
    return map(measure, source_rows(source, threads=threads))


def measure(row: DatasetRow) -> Measured:
    """One row."""
    held = row.tokens
    trained = 0
    if held is not None:
        mask = bytes(map(bool, held.mask))
        trained = sum(
            mask[span.start : span.stop].count(1)
            for span in held.answers
            if _is_trained(row.mask, span.message)
        )
    return Measured(
        facts=facts_of(row), tokens=0 if held is None else len(held.token_ids), trained_tokens=trained
    )


def _is_trained(mask: tuple[int, ...], message: int) -> bool:
    return 0 <= message < len(mask) and mask[message] != 0


def _of_dataset(dataset: Dataset) -> Iterator[Measured]:
    for shard in dataset.shards():
        for first, table in shard.tables(_COLUMNS):
            facts = unpack_facts(table, path=str(shard.path), first=first)
            for row, (tokens, trained) in zip(facts, _tokens(table.combine_chunks()), strict=True):
                yield Measured(facts=row, tokens=tokens, trained_tokens=trained)


def _tokens(table: Any) -> Iterable[tuple[int, int]]:
    """Recorded and trained ids of each row."""
    if not table.num_rows:
        return
    held, masks = table.column("tokens").chunk(0), table.column("mask").chunk(0)
    sampled, at = elements(held.field("mask"))
    before = np.concatenate(([0], np.cumsum(view(sampled) != 0)))
    spans, span_at = elements(held.field("answers"))
    message, start, stop = (view(spans.field(name)) for name in ("message", "start", "stop"))
    trained, trained_at = elements(masks)
    flags = view(trained)
    for row, gone in enumerate(absent(held)):
        own = slice(span_at[row], span_at[row + 1])
        mine = flags[trained_at[row] : trained_at[row + 1]]
        low, size = at[row], at[row + 1] - at[row]
        fits = (message[own] >= 0) & (message[own] < len(mine))
        wanted = fits & (mine[np.where(fits, message[own], 0)] != 0) if len(mine) else fits
        ends, begins = (np.clip(side[own][wanted], 0, size) + low for side in (stop, start))
        yield (0, 0) if gone else (int(size), int((before[ends] - before[begins]).sum()))
