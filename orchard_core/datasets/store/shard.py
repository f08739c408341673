"""One shard while it is written: hashed on its way, whole or not there."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

from orchard_core.datasets.store.arrow import pq
from orchard_core.datasets.store.schema import DICTIONARY, SCHEMA

_PLAIN = {
    "compression": "zstd",
    "compression_level": 1,
    "use_dictionary": DICTIONARY,
    "write_page_checksum": True,
}
"""Pages carry checksums: a flipped bit is told and never read as data."""


class ShardFile:
    """Written under another name. `commit` makes it durable and gives it its own."""

    def __init__(self, path: Path) -> None:
        self.path = path
        """Where it will lie."""
        self.rows = 0
        """So far."""
        self._part = path.with_name(f"{path.name}.tmp")
        self._sink = _Hashed(self._part)
        self._writer = pq.ParquetWriter(self._sink, SCHEMA, **_PLAIN)

    @property
    def bytes(self) -> int:
        """So far."""
        return self._sink.size

    def write(self, table: Any) -> None:
        """Add a table as one row group."""
        self._writer.write_table(table, row_group_size=max(1, table.num_rows))
        self.rows += table.num_rows

    def commit(self) -> str:
        """The file is whole and on the disk; returns its SHA-256."""
        self._writer.close()
        self._sink.sync()
        self._part.replace(self.path)
        return self._sink.digest.hexdigest()

    def drop(self) -> None:
        """Nothing of it is kept."""
        self._sink.deaf = True
        self._writer.close()
        self._sink.close()
        self._part.unlink(missing_ok=True)


class _Hashed:
    """A file that is only written to, front to back."""

    closed = False

    def __init__(self, path: Path) -> None:
        self._stream = path.open("wb")
        self.deaf = False
        self.size = 0
        self.digest = hashlib.sha256()

    def write(self, data: Any) -> int:
        """Add bytes."""
        view = memoryview(data)
        if self.deaf:
            return view.nbytes
        self._stream.write(view)
        self.digest.update(view)
        self.size += view.nbytes
        return view.nbytes

    def tell(self) -> int:
        """Bytes so far."""
        return self.size

    def flush(self) -> None:
        """Hand on to the system what is held."""
        self._stream.flush()

    def sync(self) -> None:
        """On the disk, and closed."""
        self._stream.flush()
        os.fsync(self._stream.fileno())
        self.close()

    def close(self) -> None:
        """Give the descriptor back; repeated calls are fine."""
        self.closed = True
        self._stream.close()
