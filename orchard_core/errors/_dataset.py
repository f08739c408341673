"""What fails about datasets."""

from __future__ import annotations

from orchard_core.errors._root import OrchardError


class DatasetError(OrchardError):
    """Something about a dataset is wrong."""


class DatasetNotFound(DatasetError):
    """There is nothing at this path that can be read as rows."""


class DatasetExists(DatasetError):
    """What is to be written is there already; nothing of it was touched."""


class DatasetLocked(DatasetError):
    """Another live process is writing there."""


class DatasetCorrupt(DatasetError):
    """A file cannot be read as what it says it is; rows before the fault were given.

    `path` is the file, `row` the place of the row in it, from 0, and `field` the field; None where it is not
    known, and empty for a fault of the whole row.
    """

    def __init__(
        self, message: str, *, path: str, row: int | None = None, field: str = "", hint: str = ""
    ) -> None:
        where = path if row is None else f"{path}, row {row}"
        super().__init__(f"{where}, field {field}: {message}" if field else f"{where}: {message}", hint=hint)
        self.path = path
        self.row = row
        self.field = field


class FormatUnknown(DatasetError):
    """No format recognises the file, or none has this name."""


class FormatUnsupported(DatasetError):
    """The format cannot be written, or cannot hold what is to be written."""


class CreditRefused(DatasetError):
    """Credit cannot be assigned as asked: the harness cannot be replayed, nothing is unresolved, ..."""


class MixRefused(DatasetError):
    """Nothing is left of a mix's sources, or what is in them is refused by the recipe."""
