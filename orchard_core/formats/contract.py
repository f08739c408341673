"""What a dataset format gives: files of other projects read as rows, and rows written as such files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Protocol, runtime_checkable

from orchard_core.types.dataset import DatasetRow


@runtime_checkable
class DatasetFormat(Protocol):
    """One format. Reading streams: memory does not grow with the number of rows."""

    @property
    def name(self) -> str:
        """What users write, such as `atif`."""

    @property
    def writes(self) -> bool:
        """It can be written too."""

    def recognises(self, path: Path) -> bool:
        """Whether a file or directory looks like it, from its name and its first bytes."""

    def read(self, path: Path) -> Iterator[DatasetRow]:
        """Every row, in order. Raises DatasetNotFound, and DatasetCorrupt naming file, row and field after
        the rows before the fault were given."""

    def write(self, rows: Iterable[DatasetRow], path: Path) -> int:
        """Write rows to a file or directory that must not exist, whole or not at all; gives their number.

        Raises DatasetExists, FormatUnsupported when rows hold what the format cannot, and StoreError.
        """


@runtime_checkable
class Exemplary(Protocol):
    """A format that can show itself: what is only read cannot be checked otherwise."""

    def example(self, into: Path) -> Path:
        """Lay a small file or directory of this format into an empty directory, and give its path."""
