"""How the audit log is kept."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from orchard_core import Record


class AuditSettings(Record):
    """One file of JSON lines."""

    path: Path
    """Where; made when missing, for its owner alone."""
    commands: Literal["none", "hash", "cut"] = "hash"
    """What is kept of a command: nothing; its SHA-256, by which a known command is recognised; or its first
    `cut_chars` characters, with known forms of secrets taken out."""
    cut_chars: int = Field(default=200, ge=1)
    """Characters kept of a cut command."""
    sync: Literal["always", "interval", "never"] = "interval"
    """When lines are forced to disk: each batch before the next is taken, once in `sync_s`, or when the
    kernel likes. A killed process loses none that it had written in any case; a power cut may."""
    sync_s: float = Field(default=1.0, gt=0)
    """Seconds between forced writes."""
    queue: int = Field(default=65536, ge=1)
    """Events that may wait for a slow disk; what is over is dropped, and the log says how many."""
