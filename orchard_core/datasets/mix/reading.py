"""Rows of a source, with those that cannot be read told apart where the recipe allows them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from orchard_core.datasets.mix.lines import BadRow, ReadRow, is_lines, line_rows
from orchard_core.datasets.mix.recipe import MixSource
from orchard_core.datasets.reading import Source, SourceKind, find_source, run_directories, source_rows
from orchard_core.errors import DatasetCorrupt, RecordCorrupt
from orchard_core.plugins.lookup import load_format


def kind_of(source: MixSource) -> Source:
    """What the source's path holds. Raises DatasetNotFound, FormatUnknown, PluginError."""
    return find_source(source.path, format=source.format or None)


def rows_of(source: MixSource, *, skip_bad: bool) -> Iterator[ReadRow | BadRow]:
    """Every row, in order.

    With `skip_bad`, a fault is given as a BadRow instead of raised, and reading goes on behind it: with the
    next line of JSON lines, the next run of a matrix, the next file of a directory. What follows a fault in
    the same run, or file of another kind, is not read: nobody can say where its next row begins.
    """
    found = kind_of(source)
    if found.kind is SourceKind.FORMAT and found.format == "hf" and is_lines(found.path):
        yield from line_rows(found.path, skip_bad=skip_bad)
        return
    for part in _parts(found) if skip_bad else [found]:
        try:
            for row in source_rows(part, threads=frozenset(source.threads)):
                yield ReadRow(row, None)
        except (DatasetCorrupt, RecordCorrupt) as error:
            if not skip_bad:
                raise
            yield BadRow(str(part.path), error.message)


def _parts(source: Source) -> list[Source]:
    """What is read on its own: the runs of a matrix, the files of a directory whose format knows each."""
    if source.kind is SourceKind.MATRIX:
        return [Source(path=run, kind=SourceKind.RUN) for run in run_directories(source)]
    if source.kind is SourceKind.FORMAT and source.path.is_dir():
        made = load_format(source.format)
        files = [path for path in _files(source.path) if made.recognises(path)]
        return [replace(source, path=path) for path in files] or [source]
    return [source]


def _files(root: Path) -> list[Path]:
    found = [path for path in root.rglob("*") if path.is_file()]
    return sorted(
        path for path in found if not any(part.startswith(".") for part in path.relative_to(root).parts)
    )
