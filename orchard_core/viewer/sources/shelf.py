"""Everything that one viewer shows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from orchard_core.datasets.reading import SourceKind, hint_inside, our_kind
from orchard_core.errors import ConfigError, DatasetNotFound
from orchard_core.rollout.store.run import open_run
from orchard_core.viewer.sources.contract import Source
from orchard_core.viewer.sources.line import Line
from orchard_core.viewer.sources.matrix import MatrixSource
from orchard_core.viewer.sources.run import RunSource


class Shelf:
    """Sources by key. Nothing else can be asked for, whatever a request says."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self.sources = sources
        """As they were given."""

    @classmethod
    def open(cls, paths: Sequence[Path]) -> Shelf:
        """Raises RunNotFound, DatasetNotFound, RecordCorrupt, DatasetCorrupt, and errors of newer records."""
        seen = list(dict.fromkeys(path.resolve() for path in paths))
        return cls([_open(str(number), path) for number, path in enumerate(seen, 1)])

    def source(self, key: str) -> Source | None:
        """A run, matrix, cell or dataset."""
        return next((source for source in self.every() if source.key == key), None)

    def every(self) -> Iterator[Source]:
        """Those that were given, and the cells of matrices."""
        for source in self.sources:
            yield source
            if isinstance(source, MatrixSource):
                yield from (cell.run for cell in source.cells() if cell.run is not None)

    def line(self, source: str, key: str) -> tuple[Source, Line] | None:
        """One rollout or row, by the two parts of its address."""
        found = self.source(source)
        if found is None or isinstance(found, MatrixSource):
            return None
        now = found.lines()
        place = now.by_key.get(key)
        return None if place is None else (found, now.lines[place])

    def of_task(self, task: str) -> list[Line]:
        """Every rollout and row of a task, over all that is open."""
        return [line for source in self.sources for line in source.lines().lines if line.task == task]


def _open(key: str, path: Path) -> Source:
    match our_kind(path):
        case SourceKind.RUN:
            return RunSource(key, open_run(path))
        case SourceKind.MATRIX:
            return MatrixSource(key, path)
        case SourceKind.DATASET:
            from orchard_core.viewer.sources.dataset import DatasetSource

            return DatasetSource(key, path)
    if not path.exists():
        raise DatasetNotFound(f"there is nothing at {path}", hint="orchard runs list shows the runs here")
    raise ConfigError(
        f"{path} is no run, matrix or dataset",
        hint=hint_inside(path) or "a file of another format becomes a dataset with: orchard data import",
    )
