"""Messages that stand in a source's own files just as a row has them: they are fetched there when a shard is
written, which saves writing them a second time before."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from orchard_core.datasets.mix.files import unchanged
from orchard_core.datasets.mix.index import Index
from orchard_core.datasets.mix.lines import Place
from orchard_core.datasets.mix.scan import Scan, stamps
from orchard_core.errors import DatasetError
from orchard_core.formats.records import table_files

_OPEN = 64
"""Files held open: rows come in any order, and a directory may hold many files."""


class Slices:
    """Fetches them; `check` says whether what was fetched is what was read before."""

    def __init__(self, job: Scan) -> None:
        self._job = job
        self._files: list[Path] = []
        self._open: dict[int, int] = {}

    def fetch(self, place: Place) -> bytes:
        """The bytes that stand there. Raises DatasetError where there are none any more."""
        with suppress(OSError, IndexError):
            held = os.pread(self._descriptor(place.file), place.length, place.offset)
            if len(held) == place.length:
                return held
        self.check()
        raise DatasetError(
            f"{self._job.path}: rows that were read there cannot be read again",
            hint="see who may read it, and run the command again: it goes on",
        )

    def check(self) -> None:
        """Raises DatasetError when a file of the source is not as it was when its rows were read."""
        if self._files:
            index = Index(self._job.index)
            files = index.state().files
            index.close()
            unchanged(
                files,
                stamps(self._job),
                self._job.path,
                when="before its rows were written",
                mend=self._job.mend,
            )

    def close(self) -> None:
        """Give the descriptors back."""
        while self._open:
            os.close(self._open.popitem()[1])

    def _descriptor(self, number: int) -> int:
        if number not in self._open:
            self._files = self._files or table_files(self._job.path)
            if len(self._open) >= _OPEN:
                os.close(self._open.pop(next(iter(self._open))))
            self._open[number] = os.open(self._files[number], os.O_RDONLY | os.O_CLOEXEC)
        return self._open[number]
