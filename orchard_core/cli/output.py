"""Consoles and JSON for commands: colour and width on a terminal, whole plain lines anywhere else."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import JsonValue
    from rich.console import Console
    from rich.table import Table

_WHOLE = 100_000


def console(*, stderr: bool = False) -> Console:
    """A console that never wraps what a pipe reads, and takes no markup or emoji from data."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    return Console(
        stderr=stderr,
        width=None if stream.isatty() else _WHOLE,
        markup=False,
        emoji=False,
        highlight=False,
        soft_wrap=not stream.isatty(),
    )


def table(*columns: str) -> Table:
    """A table without borders: easy on narrow terminals and on `grep`."""
    from rich.table import Table

    made = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for column in columns:
        made.add_column(column, overflow="fold")
    return made


def print_json(value: JsonValue) -> None:
    """One JSON document on stdout; ASCII only, so that no lone surrogate can break the pipe."""
    import json

    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=True) + "\n")
