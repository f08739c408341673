"""Rows from one place to another: shown on the way, and what came of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from orchard_core.cli.data.chosen import Chosen
from orchard_core.cli.display.rows_view import shown_rows
from orchard_core.cli.options import key_values
from orchard_core.cli.output import out as say
from orchard_core.cli.output import print_json
from orchard_core.datasets.reading import Source, find_source, source_rows
from orchard_core.datasets.store.manifest import Made, SourceReport, is_dataset
from orchard_core.datasets.store.taken import must_lie_apart
from orchard_core.datasets.store.writer import DEFAULT_SPLIT, DatasetWriter
from orchard_core.errors import DatasetExists, FormatUnsupported
from orchard_core.formats.contract import DatasetFormat
from orchard_core.plugins.lookup import load_format
from orchard_core.types.dataset import DatasetRow


def export_rows(
    path: Path,
    out: Path,
    *,
    format: str,  # noqa: A002 - what users write
    options: Sequence[str],
    source_format: str | None,
    chosen: Chosen,
    plain: bool,
    as_json: bool,
) -> None:
    """Read, write, and say how many."""
    made = load_format(format, **key_values(options, "--option"))
    if not made.writes:
        raise FormatUnsupported(
            f"the format {made.name} is only read", hint=f"it can be written as {_written()}"
        )
    if out.exists():
        raise DatasetExists(f"{out} is there already; nothing of it was touched", hint="choose another --out")
    source = find_source(path, format=source_format)
    rows = chosen.rows(source_rows(source, threads=chosen.threads))
    with shown_rows(f"export {path} as {format}", rows, plain=plain) as counted:
        count = made.write(counted, out)
    told = {"rows": count, "format": made.name, "source": source.kind.value, "out": str(out)}
    _say(told, f"{count:,} rows to {out} as {made.name}", as_json=as_json)


def _written() -> str:
    from orchard_core.plugins.lookup import descriptors
    from orchard_core.types.plugin import PluginKind

    names = [descriptor.name for descriptor in descriptors(PluginKind.FORMAT)]
    return ", ".join(name for name in names if load_format(name).writes)


def import_rows(
    path: Path,
    out: Path,
    *,
    format: str | None,  # noqa: A002 - what users write
    options: Sequence[str],
    split: str | None,
    chosen: Chosen,
    plain: bool,
    as_json: bool,
) -> None:
    """Read, write, and say how many; goes on where an earlier start with the same flags ended."""
    if is_dataset(out):
        raise DatasetExists(
            f"{out} holds a dataset already; nothing of it was touched", hint="choose another --out"
        )
    source = find_source(path, format=format)
    must_lie_apart(out, path)
    settings = key_values(options, "--option")
    plan = plan_of(source, settings, split, chosen)
    reader = load_format(format or source.format, **settings) if source.format else None
    read = _Counted(_read(source, reader, chosen))
    rows = chosen.rows(_with_split(read, split))
    with (
        DatasetWriter(out, plan=plan, resume=True) as writer,
        shown_rows(f"import {path}", rows, plain=plain) as counted,
    ):
        count, before = _write(writer, counted)
        left_out = read.count - count
        report = SourceReport(
            name=path.name, path=str(path), kind=source.format or source.kind.value,
            read=read.count, kept=count, dropped={"where": left_out} if left_out else {},
        )  # fmt: skip
        writer.finish(Made(by="orchard data import", sources=(report,)))
    told = {
        "rows": count,
        "resumed": before,
        "format": source.format or source.kind.value,
        "out": str(out),
    }
    _say(told, f"{count:,} rows to the dataset {out}", as_json=as_json)


class _Counted:
    """Rows, counted as they are read."""

    def __init__(self, rows: Iterable[DatasetRow]) -> None:
        self._rows = rows
        self.count = 0

    def __iter__(self) -> Iterator[DatasetRow]:
        for row in self._rows:
            self.count += 1
            yield row


def _read(source: Source, reader: DatasetFormat | None, chosen: Chosen) -> Iterator[DatasetRow]:
    return source_rows(source, threads=chosen.threads) if reader is None else reader.read(source.path)


def _with_split(rows: Iterable[DatasetRow], split: str | None) -> Iterator[DatasetRow]:
    for row in rows:
        yield row.model_copy(update={"split": split}) if split and not row.split else row


def _write(writer: DatasetWriter, rows: Iterable[DatasetRow]) -> tuple[int, int]:
    """Rows in all, and those that an earlier start had written."""
    left = dict(writer.durable)
    before = sum(left.values())
    count = 0
    for row in rows:
        count += 1
        split = row.split or DEFAULT_SPLIT
        if left.get(split, 0):
            left[split] -= 1
        else:
            writer.write(row)
    return count, before


def plan_of(source: Source, settings: Mapping[str, Any], split: str | None, chosen: Chosen) -> str:
    """What decides which rows come in which order, as a digest: files that were written to since are others,
    also where their size is the same."""
    files = [source.path] if source.path.is_file() else sorted(source.path.rglob("*"))
    decides = {
        "format": source.format,
        "options": settings,
        "split": split,
        "chosen": [
            {name: sorted(values) for name, values in chosen.wanted.items()},
            chosen.min_reward,
            chosen.limit,
        ],
        "files": [
            [str(file.relative_to(source.path.parent)), told.st_size, told.st_mtime_ns]
            for file in files
            if file.is_file() and (told := file.stat())
        ],
    }
    return hashlib.sha256(json.dumps(decides, sort_keys=True, default=str).encode()).hexdigest()


def _say(told: dict[str, Any], text: str, *, as_json: bool) -> None:
    if as_json:
        print_json(told)
    else:
        say(text)
