"""Datasets whose files were changed behind the manifest's back, or in agreement with it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from orchard_core import DatasetRow, DatasetWriter, ShardLimits


def write(out: Path, rows: list[DatasetRow], *, group_rows: int = 3, shard_rows: int = 1000) -> Path:
    """A dataset; returns its directory."""
    with DatasetWriter(out, limits=ShardLimits(group_rows=group_rows, shard_rows=shard_rows)) as writer:
        for row in rows:
            writer.write(row)
        writer.finish()
    return out


def edit_manifest(root: Path, change: Callable[[dict[str, Any]], None]) -> None:
    path = root / "manifest.json"
    fields = json.loads(path.read_bytes())
    change(fields)
    path.write_text(json.dumps(fields))


def forge(root: Path, change: Callable[[Any], Any], *, group_rows: int = 3) -> Path:
    """Change the table of the first shard, and make the manifest agree with the new file."""
    path = next((root / "data").glob("*.parquet"))
    pq.write_table(change(pq.read_table(path)), path, row_group_size=group_rows, compression="zstd")
    data = path.read_bytes()

    def agree(fields: dict[str, Any]) -> None:
        fields["shards"][0] |= {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}

    edit_manifest(root, agree)
    return path


def put(name: str, place: int, value: object) -> Callable[[Any], Any]:
    """Another value in one row of a column."""

    def change(table: Any) -> Any:
        values = table.column(name).to_pylist()
        values[place] = value
        at = table.schema.get_field_index(name)
        return table.set_column(at, table.schema.field(at), pa.array(values, table.schema.field(at).type))

    return change


def not_utf8(name: str, place: int) -> Callable[[Any], Any]:
    """Bytes that are no text in one row of a column."""

    def change(table: Any) -> Any:
        values = [text.encode() for text in table.column(name).to_pylist()]
        values[place] = b"caf\xe9"
        made = pa.array(values, pa.binary())
        at = table.schema.get_field_index(name)
        column = pa.Array.from_buffers(pa.string(), len(made), made.buffers())
        return table.set_column(at, table.schema.field(at), column)

    return change
