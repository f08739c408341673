"""`orchard report`: what a run says, as Markdown or JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def report(
    runs: Annotated[
        list[Path], typer.Argument(help="Run directories; several are compared.", show_default=False)
    ],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write to this file instead.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of Markdown.")] = False,
) -> None:
    """Print a report of one or more runs.

    pass@1 and pass@k with confidence intervals, outcomes, turns, tokens, cost, time.
    """
    raise NotImplementedError
