"""Grading a run, or every cell of a matrix, and saying what changed."""

from __future__ import annotations

import sys
from contextlib import AsyncExitStack
from pathlib import Path
from shutil import get_terminal_size

import typer

from orchard_core.cli.exits import Exit
from orchard_core.cli.interrupt import cancelling, run_async
from orchard_core.cli.output import err, out, print_json, table
from orchard_core.cli.recipe import make_recipe
from orchard_core.cli.resolve import stored
from orchard_core.errors import StoreError
from orchard_core.evals.clean import clean_line
from orchard_core.plugins import lookup
from orchard_core.rollout.matrix.plan import cell_directory, is_matrix, read_plan
from orchard_core.rollout.regrading import Regraded, regrade_run, to_regrade
from orchard_core.rollout.store.run import CONFIG_NAME

_SHOWN = 20
_EVERY = 25
"""Rollouts between two lines of progress where no terminal is."""


class _Tally:
    """What was graded so far, and the progress line."""

    def __init__(self, total: int) -> None:
        self.results: list[Regraded] = []
        self._total = total
        self._live = sys.stderr.isatty()

    def add(self, result: Regraded) -> None:
        """One more."""
        self.results.append(result)
        done = len(self.results)
        if self._live:
            sys.stderr.write(f"\rgraded {done}/{self._total}" + ("\n" if done == self._total else ""))
            sys.stderr.flush()
        elif done % _EVERY == 0 or done == self._total:
            err(f"graded {done}/{self._total}")


def launch(root: Path, *, every: bool, concurrency: int, as_json: bool) -> None:
    """Grade, show, and print what came of it. Raises typer.Exit unless each has a new score."""
    runs, damaged = _readable(_runs(root), alone=not is_matrix(root), every=every)
    tally = _Tally(sum(runs.values()))
    _, code = run_async(cancelling(lambda: _all(list(runs), tally, every=every, concurrency=concurrency)))
    if as_json:
        print_json([result.model_dump(mode="json") for result in tally.results])
    else:
        for line in _lines(tally.results):
            out(line)
    if code is not Exit.OK:
        raise typer.Exit(code)
    if damaged or any(result.refused for result in tally.results):
        raise typer.Exit(Exit.UNSOUND)


def _runs(root: Path) -> list[Path]:
    if not is_matrix(root):
        return [root]
    cells = [cell_directory(root, cell.key) for cell in read_plan(root).cells]
    return [cell for cell in cells if (cell / CONFIG_NAME).is_file()]


def _readable(runs: list[Path], *, alone: bool, every: bool) -> tuple[dict[Path, int], bool]:
    """How many rollouts of each run there are to grade, and whether a damaged cell was passed over."""
    found: dict[Path, int] = {}
    for run in runs:
        try:
            found[run] = len(to_regrade(run, every=every))
        except StoreError as error:
            if alone:
                raise
            err(f"passed over: {error.message}", fg="yellow")
    return found, len(found) < len(runs)


async def _all(runs: list[Path], tally: _Tally, *, every: bool, concurrency: int) -> None:
    for run in runs:
        async with AsyncExitStack() as stack:
            recipe = make_recipe(stored(run), where=str(run))
            provider = lookup.load_provider(recipe.sandbox, **recipe.sandbox_options)
            stack.push_async_callback(provider.close)
            taskset = lookup.load_taskset(recipe.taskset, **recipe.taskset_options)
            results = regrade_run(
                run, taskset=taskset, provider=provider, every=every, concurrency=concurrency
            )
            stack.push_async_callback(results.aclose)
            async for result in results:
                tally.add(result)


def _lines(results: list[Regraded]) -> list[str]:
    if not results:
        return ["nothing to grade: every finished rollout has a score (--all grades them too)"]
    graded = [result for result in results if not result.refused]
    refused = [result for result in results if result.refused]
    changed = [result for result in graded if result.before != result.after]
    lines = [f"{len(graded)} graded, {len(changed)} with another score, {len(refused)} not graded"]
    width = get_terminal_size().columns if sys.stdout.isatty() else None
    if changed:
        rows = [
            (result.rollout, clean_line(result.task), _score(result.before), _score(result.after))
            for result in changed[:_SHOWN]
        ]
        lines += ["", *table(("ROLLOUT", "TASK", "BEFORE", "AFTER"), rows, width=width)]
        lines += _more(changed)
    if refused:
        rows3 = [(result.rollout, clean_line(result.refused, 300)) for result in refused[:_SHOWN]]
        lines += ["", *table(("ROLLOUT", "NOT GRADED BECAUSE"), rows3, width=width), *_more(refused)]
    return lines


def _more(results: list[Regraded]) -> list[str]:
    return [f"and {len(results) - _SHOWN} more (--json lists all)"] if len(results) > _SHOWN else []


def _score(score: float | None) -> str:
    return "none" if score is None else f"{score:.3f}"
