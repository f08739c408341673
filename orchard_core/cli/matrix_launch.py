"""From a recipe to a finished matrix."""

from __future__ import annotations

import os
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from shutil import get_terminal_size

import typer

from orchard_core.cli.display.matrix_watcher import Display, make_display
from orchard_core.cli.exits import Exit
from orchard_core.cli.interrupt import run_async
from orchard_core.cli.matrix_recipe import MatrixRecipe
from orchard_core.cli.matrix_resolve import new_directory
from orchard_core.cli.matrix_summary import MatrixSummary
from orchard_core.cli.output import err, out, print_json
from orchard_core.cli.recipe import to_yaml
from orchard_core.errors import ConfigError
from orchard_core.evals.matrix import build_matrix
from orchard_core.rollout.matrix.front import run_matrix
from orchard_core.rollout.matrix.plan import is_matrix
from orchard_core.rollout.stop import Stop


def act(recipe: MatrixRecipe, *, print_config: bool, dry_run: bool, plain: bool, as_json: bool) -> None:
    """Do with the recipe what the flags say."""
    if print_config:
        typer.echo(to_yaml(recipe), nl=False)
    elif dry_run:
        from orchard_core.cli.matrix_dry import dry

        dry(recipe, as_json=as_json)
    else:
        launch(recipe, plain=plain, as_json=as_json)


def launch(recipe: MatrixRecipe, *, plain: bool, as_json: bool) -> None:
    """Run it, show it go on, print what came out. Raises typer.Exit unless every rollout has a score."""
    directory = Path(recipe.out or new_directory())
    display = make_display(f"matrix {directory}", plain=plain)
    _check_writable(directory)
    with display.showing():
        _, code = run_async(lambda stop: _execute(recipe, directory, display, stop))
    summary = MatrixSummary.of(build_matrix(directory), stopped=display.stopped_by)
    if as_json:
        print_json(summary.model_dump(mode="json"))
    else:
        width = get_terminal_size().columns if sys.stdout.isatty() else None
        for line in summary.lines(width):
            out(line)
    if summary.missing:
        err(f"go on with: orchard matrix --out {directory}", bold=True)
    if code is not Exit.OK:
        raise typer.Exit(code)
    if not summary.sound:
        raise typer.Exit(Exit.UNSOUND)


async def _execute(recipe: MatrixRecipe, directory: Path, display: Display, stop: Stop) -> None:
    rollouts = run_matrix(
        harnesses=recipe.harnesses,
        models=recipe.models,
        tasksets=recipe.tasksets,
        out=directory,
        shared=recipe.shared(),
        options=recipe.options(),
        watcher=display,
        stop=stop,
    )
    async with AsyncExitStack() as stack:
        stack.push_async_callback(rollouts.aclose)
        async for _ in rollouts:
            pass


def _check_writable(root: Path) -> None:
    """Raises ConfigError where the matrix directory could not be made."""
    if is_matrix(root):
        return
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        where = os.fsdecode(error.filename) if error.filename else root
        raise ConfigError(
            f"the matrix directory {root} cannot be made: {error.strerror} ({where})",
            hint="choose another --out",
        ) from error
