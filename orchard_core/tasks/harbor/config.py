"""Options of the `harbor` task set."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from orchard_core.types.base import Record


class HarborConfig(Record):
    """`harbor:PATH`."""

    path: Path
    """A directory of task directories, or one task directory."""
    pass_env: tuple[str, ...] = ()
    """Variables of this process that a task's `${NAME}` may read; any other stays empty and is told."""
    max_mb: int = Field(default=1024, gt=0)
    """Largest task directory that is taken, MiB."""
