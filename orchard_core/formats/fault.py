"""What is wrong with a row of a file, before it is known where the row stands."""

from __future__ import annotations

from orchard_core.errors import DatasetCorrupt

_HINT = "fetch or write the file again; the rows before this one are intact"


class Fault(ValueError):
    """One fault; `field` is dotted, such as `messages[2].role`, empty for the whole row."""

    def __init__(self, message: str, *, field: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.field = field

    def at(self, path: str, row: int | None) -> DatasetCorrupt:
        """The error that users see."""
        return DatasetCorrupt(self.message, path=path, row=row, field=self.field, hint=_HINT)
