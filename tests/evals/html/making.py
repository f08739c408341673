"""Matrices on disk as reports see them."""

from __future__ import annotations

from pathlib import Path

from orchard_core import Attribution, Outcome, Rollout
from orchard_core.rollout.matrix.key import CellKey
from orchard_core.rollout.matrix.plan import MatrixPart, MatrixPlan, MatrixShared, cell_directory, write_plan
from orchard_core.rollout.store.files import DiskFiles
from orchard_core.rollout.store.writer import RunWriter

from ..making import make_config, make_planned, make_rollout

NASTY = "</script><img src=x onerror=alert(1)><style>*{}</style>\x1b[31m\u202e'\"&\u0000{{7*7}}"
HARNESSES, MODELS, TASKS, ATTEMPTS = ("react", "cli:pi"), ("big", "small"), 3, 2
PASSED = {"react/big": 6, "react/small": 3, "cli:pi/big": 4, "cli:pi/small": 1}
"""Of six attempts, by cell; one of those that did not pass failed for another reason than the agent."""
BLAMED = {
    "react/small": (Outcome.SANDBOX_FAILED, Attribution.INFRASTRUCTURE, "SandboxGone"),
    "cli:pi/big": (Outcome.MODEL_FAILED, Attribution.MODEL, "ModelOverloaded"),
    "cli:pi/small": (Outcome.HARNESS_FAILED, Attribution.HARNESS, "HarnessCrashed"),
}


async def write_matrix(root: Path, *, prices: bool = True, tail: str = "") -> Path:
    """Two harnesses by two models, and a third harness that was refused. `tail` goes into every name."""
    root.mkdir(exist_ok=True)
    plan = MatrixPlan.product(
        harnesses=[MatrixPart(name=f"{name}{tail}") for name in (*HARNESSES, "zeroclaw")],
        models=[MatrixPart(name=f"{name}{tail}") for name in MODELS],
        tasksets=[MatrixPart(name=f"set{tail}")],
        shared=MatrixShared(attempts=ATTEMPTS),
        created_at=0.0,
    )
    refused = {
        cell.key.slug: f"needs a browser{tail}" for cell in plan.cells if "zeroclaw" in cell.harness.name
    }
    cells = [cell.model_copy(update={"refused": refused.get(cell.key.slug, "")}) for cell in plan.cells]
    write_plan(DiskFiles(), root, plan.model_copy(update={"cells": tuple(cells)}))
    for harness in HARNESSES:
        for model in MODELS:
            key = CellKey(harness=f"{harness}{tail}", model=f"{model}{tail}", taskset=f"set{tail}")
            await write_cell(cell_directory(root, key), f"{harness}/{model}", key, prices=prices, tail=tail)
    return root


async def write_cell(directory: Path, name: str, key: CellKey, *, prices: bool, tail: str) -> None:
    config = make_config(
        harness=key.harness,
        model=key.model,
        taskset=key.taskset,
        attempts=ATTEMPTS,
        problems=(f"left out{tail}",),
    )
    places = [(task, attempt) for task in range(TASKS) for attempt in range(ATTEMPTS)]
    cost = None if not prices or name.startswith("cli") else 0.25
    async with await RunWriter.open(directory, config) as writer:
        await writer.plan(
            [make_planned(f"task-{task}{tail}", attempt, id=_id(task, attempt)) for task, attempt in places]
        )
        for place, (task, attempt) in enumerate(places):
            rollout = _rollout(name, place, f"task-{task}{tail}", attempt, cost, tail)
            await writer.finish(rollout.model_copy(update={"id": _id(task, attempt)}))


def _id(task: int, attempt: int) -> str:
    return f"{task:010x}{attempt:010x}"


def _rollout(name: str, place: int, task: str, attempt: int, cost: float | None, tail: str) -> Rollout:
    if name in BLAMED and place == PASSED[name]:
        outcome, blamed, error = BLAMED[name]
        ended = {"outcome": outcome, "attribution": blamed, "error": f"{error}{tail}", "score": None}
        return make_rollout(task, attempt, cost_usd=cost, **ended)  # type: ignore[arg-type]
    return make_rollout(task, attempt, score=float(place < PASSED[name]), turns=4, cost_usd=cost)
