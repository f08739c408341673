"""Rows of a source, with those that cannot be read told apart where the recipe allows them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from orchard_core.datasets.mix.recipe import MixSource
from orchard_core.datasets.reading import Source, SourceKind, find_source, run_directories, source_rows
from orchard_core.errors import DatasetCorrupt, RecordCorrupt
from orchard_core.types.dataset import DatasetRow


@dataclass(frozen=True, slots=True, kw_only=True)
class BadRow:
    """What cannot be read."""

    id: str
    """Where it stands."""
    why: str
    """What is wrong with it."""


def kind_of(source: MixSource) -> Source:
    """What the source's path holds. Raises DatasetNotFound, FormatUnknown, PluginError."""
    return find_source(source.path, format=source.format or None)


def rows_of(source: MixSource, *, skip_bad: bool) -> Iterator[DatasetRow | BadRow]:
    """Every row, in order.

    With `skip_bad`, a fault is given as a BadRow instead of raised, and reading goes on behind it: with the
    next run of a matrix, or the next file of a directory. What follows a fault in the same run or file is not
    read, for nobody can say where its next row begins.
    """
    found = kind_of(source)
    if not skip_bad:
        yield from source_rows(found, threads=source.threads)
        return
    for part in _parts(found):
        try:
            yield from source_rows(part, threads=source.threads)
        except (DatasetCorrupt, RecordCorrupt) as error:
            yield BadRow(id=str(part.path), why=error.message)


def _parts(source: Source) -> list[Source]:
    if source.kind is SourceKind.MATRIX:
        return [Source(path=run, kind=SourceKind.RUN) for run in run_directories(source)]
    if source.kind is SourceKind.FORMAT and source.path.is_dir():
        return [Source(path=path, kind=source.kind, format=source.format) for path in _files(source.path)]
    return [source]


def _files(path: Path) -> list[Path]:
    found = [file for file in path.rglob("*") if file.is_file()]
    return sorted(file for file in found if not any(part.startswith(".") for part in file.parts))
