"""What names a cell."""

from __future__ import annotations

import re

from orchard_core.rollout.identity import digest
from orchard_core.types.base import Record

_UNSAFE = re.compile(r"[^A-Za-z0-9.]+")
_LONGEST = 32


class CellKey(Record):
    """One combination, each part as the user wrote it."""

    harness: str
    """Such as `react` or `cli:pi`."""
    model: str
    """Such as `oracle`."""
    taskset: str
    """Such as `workbench:20`."""

    @property
    def text(self) -> str:
        """For people: `react · oracle · workbench:20`."""
        return f"{self.harness} · {self.model} · {self.taskset}"

    @property
    def slug(self) -> str:
        """Name of the cell's directory: readable, and different for different keys."""
        parts = (self.harness, self.model, self.taskset)
        words = "--".join(_UNSAFE.sub("-", part).strip("-.")[-_LONGEST:] for part in parts)
        return f"{words}-{digest(*parts)[:6]}"
