"""The `hf` format."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from orchard_core.formats.hf.config import HfConfig
from orchard_core.formats.hf.reading import hf_row
from orchard_core.formats.hf.writing import HfWriter
from orchard_core.formats.published.columns import is_published
from orchard_core.formats.records import first_record, read_rows_of
from orchard_core.formats.sheets import Layout, write_table
from orchard_core.types.dataset import DatasetRow


class HfFormat:
    """`messages` and `tools` rows as JSON lines, packed or not, and Parquet."""

    name = "hf"
    writes = True

    def __init__(self, config: HfConfig) -> None:
        self._config = config

    def recognises(self, path: Path) -> bool:
        """By its first row; the published columns are formats of their own, our datasets have a manifest."""
        if (path / "manifest.json").exists():
            return False
        first = first_record(path)
        if first is None or is_published(first) or "trajectory_format" in first:
            return False
        return "messages" in first or ("prompt" in first and "completion" in first)

    def read(self, path: Path) -> Iterator[DatasetRow]:
        """Raises DatasetNotFound and DatasetCorrupt."""
        return read_rows_of(path, hf_row)

    def write(self, rows: Iterable[DatasetRow], path: Path) -> int:
        """Raises DatasetExists and FormatUnsupported."""
        writer = HfWriter(self._config)
        ending = "parquet" if self._config.files == "parquet" else "jsonl"
        layout = Layout(records=writer.records, schema=writer.schema, split_file=f"{{split}}.{ending}")
        return write_table(rows, path, layout)
