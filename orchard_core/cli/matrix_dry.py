"""`orchard matrix --dry-run`: load every part, and say which cells would run."""

from __future__ import annotations

from contextlib import AsyncExitStack

import typer

from orchard_core.cli.exits import Exit
from orchard_core.cli.interrupt import cancelling, run_async
from orchard_core.cli.matrix_recipe import MatrixRecipe
from orchard_core.cli.output import out, print_json
from orchard_core.evals.clean import clean_line
from orchard_core.gateway.server import Gateway
from orchard_core.rollout.matrix.key import CellKey
from orchard_core.rollout.matrix.loading import REFUSALS, Loader, check_names
from orchard_core.rollout.matrix.plan import MatrixPlan, MatrixShared, PlannedCell
from orchard_core.rollout.opening import check_images, select_tasks
from orchard_core.rollout.selecting import selection
from orchard_core.types.base import Record


class DryCell(Record):
    """One cell as it would run."""

    key: CellKey
    """Which."""
    tasks: int
    """Tasks it would run."""
    rollouts: int
    """Attempts at all of them."""
    refused: str
    """Why it cannot be run; empty: it can."""


def dry(recipe: MatrixRecipe, *, as_json: bool) -> None:
    """Raises typer.Exit when a cell cannot be run."""
    plan = MatrixPlan.product(
        harnesses=recipe.harnesses, models=recipe.models, tasksets=recipe.tasksets, shared=recipe.shared(),
        created_at=0.0,
    )  # fmt: skip
    check_names(plan, {})
    recipe.options().check(plan)
    cells, code = run_async(cancelling(lambda: _checked(plan)))
    if cells is None:
        raise typer.Exit(code)
    if as_json:
        print_json([cell.model_dump(mode="json") for cell in cells])
    else:
        for cell in cells:
            what = (
                f"refused: {clean_line(cell.refused, 500)}" if cell.refused else f"{cell.rollouts} rollouts"
            )
            out(f"{clean_line(cell.key.text)}: {what}")
        total = sum(cell.rollouts for cell in cells)
        out(f"would run {total} rollouts, {recipe.concurrency} at once")
    if any(cell.refused for cell in cells):
        raise typer.Exit(Exit.UNSOUND)


async def _checked(plan: MatrixPlan) -> list[DryCell]:
    async with AsyncExitStack() as stack:
        loader = Loader(stack, given={})
        return [await _cell(cell, loader, plan.shared) for cell in plan.cells]


async def _cell(cell: PlannedCell, loader: Loader, shared: MatrixShared) -> DryCell:
    try:
        parts = loader.parts(cell, shared, Gateway())
        tasks = select_tasks(parts.taskset, selection(shared.tasks, shared.limit))
        await check_images(tasks.values(), parts)
    except REFUSALS as error:
        reason = f"{error.message}; {error.hint}" if error.hint else error.message
        return DryCell(key=cell.key, tasks=0, rollouts=0, refused=reason)
    return DryCell(key=cell.key, tasks=len(tasks), rollouts=len(tasks) * shared.attempts, refused="")
