"""Rows from whatever a path holds: a run, a matrix, a dataset, or a file of a known format."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from orchard_core.datasets.rows import DEFAULT_THREADS, rollout_rows
from orchard_core.datasets.store.manifest import MANIFEST_NAME, PARTIAL, is_dataset, read_manifest
from orchard_core.errors import DatasetNotFound, FormatUnknown
from orchard_core.formats.contract import DatasetFormat
from orchard_core.plugins.lookup import descriptors, load_format
from orchard_core.rollout.matrix.plan import cell_directory, is_matrix, read_plan
from orchard_core.rollout.store.run import CONFIG_NAME, PLAN_NAME, open_run
from orchard_core.types.dataset import DatasetRow
from orchard_core.types.plugin import PluginKind
from orchard_core.types.sample import SampleLabel


class SourceKind(StrEnum):
    """What a path holds."""

    RUN = "run"
    """A run directory, also one that is being written."""
    MATRIX = "matrix"
    """The directory of a matrix: all runs in it."""
    DATASET = "dataset"
    """A dataset of ours."""
    FORMAT = "format"
    """A file or directory of another project's format."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A path, and what it holds."""

    path: Path
    """The path."""
    kind: SourceKind
    """What it holds."""
    format: str = ""
    """The format as users write it, such as `hf` or `hf:turns`, of kind `format`."""


def find_source(path: str | Path, *, format: str | None = None) -> Source:  # noqa: A002 - what users write
    """What a path holds. A format that is named is taken at its word.

    Raises DatasetNotFound when nothing is there, FormatUnknown when nothing is recognised in it or it is no
    file, and what `load_format` raises.
    """
    path = Path(path)
    if not path.exists():
        raise DatasetNotFound(f"there is nothing at {path}", hint="name a run, a matrix, a dataset or a file")
    if not (path.is_file() or path.is_dir()):
        raise FormatUnknown(
            f"{path} is a pipe or a device, and rows are read more than once",
            hint="write them to a file first, and name that",
        )
    if format is not None:
        load_format(format)
        return Source(path=path, kind=SourceKind.FORMAT, format=format)
    if kind := our_kind(path):
        return Source(path=path, kind=kind)
    if (path / PARTIAL).is_dir():
        read_manifest(path)  # says how to go on
    return Source(path=path, kind=SourceKind.FORMAT, format=_recognised(path).name)


def our_kind(path: Path) -> SourceKind | None:
    """Which directory of ours this is: of a run, a matrix or a dataset; None: none."""
    if (path / CONFIG_NAME).is_file():
        return SourceKind.RUN
    if is_matrix(path):
        return SourceKind.MATRIX
    return SourceKind.DATASET if is_dataset(path) else None


def hint_inside(path: Path) -> str:
    """What to name instead of a directory that is none of ours but has such in it; empty: it has none."""
    try:
        inside = sorted(child.name for child in path.iterdir() if our_kind(child))
    except OSError:
        return ""
    return f"name what lies in it, as in {path / inside[0]}" if inside else ""


def run_directories(source: Source) -> list[Path]:
    """The runs of a run or of a matrix, in order; cells that were never started are left out."""
    if source.kind is SourceKind.RUN:
        return [source.path]
    cells = (cell_directory(source.path, cell.key) for cell in read_plan(source.path).cells)
    return [cell for cell in cells if (cell / CONFIG_NAME).is_file()]


def read_rows(
    path: str | Path,
    *,
    format: str | None = None,  # noqa: A002 - what users write
    threads: frozenset[SampleLabel] = DEFAULT_THREADS,
) -> Iterator[DatasetRow]:
    """Every row that a path holds, one after the other; memory does not grow with their number.

    `threads` says which conversations of a rollout become rows; of what is no rollout every row is given.
    Raises DatasetNotFound, FormatUnknown and what `load_format` raises before the first row; DatasetCorrupt,
    or RecordCorrupt of a run, after those before the fault.
    """
    return source_rows(find_source(path, format=format), threads=threads)


def source_rows(source: Source, *, threads: frozenset[SampleLabel] = DEFAULT_THREADS) -> Iterator[DatasetRow]:
    """The same of a path whose kind is known."""
    match source.kind:
        case SourceKind.DATASET:
            from orchard_core.datasets.store.reader import open_dataset

            return open_dataset(source.path).rows()
        case SourceKind.FORMAT:
            return load_format(source.format).read(source.path)
    return _run_rows(run_directories(source), threads)


def _run_rows(runs: list[Path], threads: frozenset[SampleLabel]) -> Iterator[DatasetRow]:
    for directory in runs:
        name = directory.resolve().name
        for rollout in open_run(directory).rollouts():
            yield from rollout_rows(rollout, threads=threads, run=name)


def _recognised(path: Path) -> DatasetFormat:
    if hint := hint_inside(path):
        raise FormatUnknown(f"{path} is no run, matrix or dataset, but has such in it", hint=hint)
    names = [descriptor.name for descriptor in descriptors(PluginKind.FORMAT)]
    for name in names:
        made = load_format(name)
        if made.recognises(path):
            return made
    looked = f"{CONFIG_NAME} of a run, {PLAN_NAME} of a matrix, {MANIFEST_NAME} of a dataset"
    raise FormatUnknown(
        f"{path} is nothing that can be read as rows: it has no {looked}, and no format recognises it",
        hint=f"name its format with --format: {', '.join(names) or 'none is installed'}",
    )
