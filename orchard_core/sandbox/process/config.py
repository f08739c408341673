"""Options of the process provider."""

from __future__ import annotations

from orchard_core.types.base import Record


class ProcessConfig(Record):
    """There is little to choose: nothing is isolated."""

    state_dir: str | None = None
    """Directory below which each sandbox gets one of its own; None: as for the provider `local`."""
    create_timeout_s: float = 30.0
    """A sandbox whose agent does not answer after this many seconds has failed."""
