"""`orchard regrade`: judge again what a run kept."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def regrade(
    run: Annotated[
        Path, typer.Argument(metavar="RUN", help="A run or matrix directory.", show_default=False)
    ],
    every: Annotated[
        bool, typer.Option("--all", help="Also rollouts that have a score, such as after a fixed verifier.")
    ] = False,
    concurrency: Annotated[int, typer.Option(min=1, help="Rollouts at once.")] = 4,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Grade rollouts again from what a run kept.

    No agent and no model runs. Without --all, those are graded that have no score. The old records stay in
    the run. Exits with 1 when a rollout could not be graded.
    """
    from orchard_core.cli.regrading import launch

    launch(run, every=every, concurrency=concurrency, as_json=as_json)
