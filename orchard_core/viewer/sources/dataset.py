"""A dataset's directory. It never changes once it is whole, so its small columns are read once."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

from orchard_core.datasets.store.facts import RowFacts
from orchard_core.datasets.store.reader import open_dataset
from orchard_core.evals.html import words
from orchard_core.types.dataset import DatasetRow
from orchard_core.viewer.pieces import Piece
from orchard_core.viewer.sources.contract import Lines
from orchard_core.viewer.sources.line import Line
from orchard_core.viewer.trace.cutting import Room
from orchard_core.viewer.trace.parts import Trace
from orchard_core.viewer.trace.row import answer_of, row_piece, row_trace
from orchard_core.viewer.trace.texts import row_texts
from orchard_core.viewer.trace.tokens import SampledToken, row_tokens

MOST = 200_000
"""Rows that are listed."""
_KEPT, _KEPT_CHARACTERS = 6, 8 << 20


class DatasetSource:
    """One dataset."""

    kind = "dataset"

    def __init__(self, key: str, root: Path) -> None:
        """Raises DatasetNotFound, DatasetCorrupt."""
        self._key, self._root = key, root
        self._dataset = open_dataset(root)
        self._lock = threading.Lock()
        self._lines: Lines | None = None
        self._rows: OrderedDict[int, DatasetRow] = OrderedDict()

    @property
    def key(self) -> str:
        """See Source."""
        return self._key

    @property
    def root(self) -> Path:
        """See Source."""
        return self._root

    @property
    def title(self) -> str:
        """Its directory's name."""
        return self._root.resolve().name

    def facts(self) -> Mapping[str, str]:
        """See Source."""
        totals = self._dataset.manifest.splits.values()
        splits = ", ".join(f"{name} {split.rows:,}" for name, split in self._dataset.manifest.splits.items())
        return {
            "rows": f"{len(self._dataset):,}",
            "splits": splits or words.NONE,
            "tokens": words.count(sum(split.tokens for split in totals)),
            "turns trained": f"{sum(s.trained_turns for s in totals):,} of {sum(s.turns for s in totals):,}",
        }

    def lines(self) -> Lines:
        """See Source. Raises DatasetCorrupt."""
        with self._lock:
            if self._lines is None:
                self._lines = self._listed()
            return self._lines

    def _listed(self) -> Lines:
        facts = islice(self._dataset.facts(), MOST)
        lines = [self._line(place, row) for place, row in enumerate(facts)]
        left = len(self._dataset) - len(lines)
        return Lines(
            lines=lines,
            by_key={line.key: place for place, line in enumerate(lines)},
            planned=len(self._dataset),
            stamp=(self._dataset.manifest.created_at,),
            note=f"{left:,} rows after the first {MOST:,} are not listed" if left else "",
        )

    def _line(self, place: int, row: RowFacts) -> Line:
        return Line(
            source=self._key,
            key=str(place),
            id=row.id,
            task=row.task,
            attempt=row.attempt,
            harness=row.harness,
            model=row.model,
            taskset=row.taskset,
            outcome=row.outcome,
            attribution=row.attribution,
            score=row.reward,
            turns=row.turns,
            tokens=row.token_count,
            tags=row.tags,
            label=row.label.value,
            split=row.split,
            mixed_from=row.source,
            credit=(row.credit,) if row.credit else (),
            number=place,
            mark=f"{self._dataset.manifest.created_at}",
        )

    def row(self, place: int) -> DatasetRow:
        """One row. Raises DatasetCorrupt."""
        with self._lock:
            if place not in self._rows:
                row = self._dataset.row(place)
                if len(row.messages) > _KEPT_CHARACTERS:
                    return row
                self._rows[place] = row
                while len(self._rows) > _KEPT:
                    self._rows.popitem(last=False)
            self._rows.move_to_end(place)
            return self._rows[place]

    def trace(self, line: Line, *, first: int = 0, room: Room | None = None, samples: bool = True) -> Trace:
        """See Source."""
        return row_trace(self.row(line.number), first=first, room=room)

    def piece(self, line: Line, ref: str) -> Piece | None:
        """See Source."""
        return row_piece(self.row(line.number), ref)

    def tokens(self, line: Line, number: int) -> Sequence[SampledToken]:
        """See Source."""
        row = self.row(line.number)
        message = answer_of(row, number)
        return () if message is None else row_tokens(row, message)

    def texts(self, line: Line) -> Iterator[tuple[int, str]]:
        """See Source."""
        return row_texts(self.row(line.number))

    def raw(self, line: Line) -> bytes:
        """See Source."""
        return self.row(line.number).model_dump_json(indent=1).encode()
