"""The HTML report of 10,000 rollouts: seconds and megabytes, beside the plainest report of the same rows.

    python bench/report.py [--tasks 250] [--keep DIRECTORY] [--no-peers] [--json]

A matrix of 5 harnesses by 2 models, 250 tasks, 4 attempts, written by the real store. Timed is the whole
command `orchard report MATRIX --html`, interpreter included. Peer: pandas reads the same journals and writes
them as one table (`DataFrame.to_html`), and Plotly one heat map with its own script, in an environment that
is thrown away.
"""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.peers.environment import LeftOut, make_environment, times
from bench.store import make_rollout
from bench.table import Table, at_most, options, run_as_product
from orchard_core import Attribution, Outcome, RewardResult, Rollout, Trajectory
from orchard_core.rollout.config import RunConfig
from orchard_core.rollout.matrix.plan import MatrixPart, MatrixPlan, MatrixShared, cell_directory, write_plan
from orchard_core.rollout.store.entry import Planned
from orchard_core.rollout.store.files import DiskFiles
from orchard_core.rollout.store.writer import RunWriter

ORCHARD = str(Path(sys.executable).with_name("orchard"))
HARNESSES = ("react", "miniswe", "openhands", "zeroclaw", "cli:codex")
MODELS = ("openai:gpt-oss-120b", "openai:qwen3-32b")
ATTEMPTS, AT_ONCE = 4, 64
PACKAGES = ("pandas==3.1.1", "plotly==7.1.0")
SECONDS, MEGABYTES = 10, 5
FAILED = (
    (Outcome.SANDBOX_FAILED, Attribution.INFRASTRUCTURE),
    (Outcome.MODEL_FAILED, Attribution.MODEL),
    (Outcome.HARNESS_FAILED, Attribution.HARNESS),
)


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--tasks", type=int, default=250)
    parser.add_argument("--keep", type=Path, default=None, help="write the matrix here, and leave it")
    parser.add_argument("--no-peers", action="store_true", help="nothing is installed")
    given = parser.parse_args()
    table = Table("report", as_json=given.json)
    with tempfile.TemporaryDirectory(prefix="orchard-bench-") as folder:
        root = given.keep or Path(folder) / "matrix"
        rollouts = run_as_product(lambda: write_matrix(root, given.tasks))
        seconds, size = ours(root)
        its = None if given.no_peers else peer(table, root, Path(folder))
    name = f"report of {rollouts:,} rollouts"
    its_seconds, its_size, chart = its or (0.0, 0.0, 0.0)
    beside = "pandas to_html" if its else "no peer"
    table.row(name, seconds, "s", peer=beside, beside=its_seconds, asked=at_most(SECONDS))
    table.row(f"{name}, size", size, "MB", peer=beside, beside=its_size, asked=at_most(MEGABYTES))
    table.note(f"one Plotly heat map with its own script is {chart:.2f} MB" if its else "no peers")
    return table.end()


def ours(root: Path) -> tuple[float, float]:
    """Seconds and megabytes."""
    began = time.perf_counter()
    subprocess.run([ORCHARD, "report", str(root), "--html"], check=True, capture_output=True)
    return time.perf_counter() - began, (root / "report.html").stat().st_size / 1e6


def peer(table: Table, root: Path, folder: Path) -> tuple[float, float, float] | None:
    """Seconds, megabytes of the table and of the chart; None when it cannot be had."""
    journals = folder / "journals.txt"
    journals.write_text("\n".join(map(str, sorted(root.glob("cells/*/journal.jsonl")))))
    try:
        python = make_environment(folder / "venv", PACKAGES)
        seconds, size, chart = times(python, "pandas_table.py", str(journals), str(folder))
    except LeftOut as why:
        table.note(f"left out: pandas and Plotly: {why}")
        return None
    return seconds, size / 1e6, chart / 1e6


async def write_matrix(root: Path, tasks: int) -> int:
    """How many rollouts there are."""
    plan = MatrixPlan.product(
        harnesses=[MatrixPart(name=name) for name in HARNESSES],
        models=[MatrixPart(name=name) for name in MODELS],
        tasksets=[MatrixPart(name="swe-verified")],
        shared=MatrixShared(attempts=ATTEMPTS),
        created_at=0.0,
    )
    root.mkdir(parents=True)
    write_plan(DiskFiles(), root, plan)
    whole = make_rollout(0).model_copy(update={"trajectory": Trajectory()})
    for number, cell in enumerate(plan.cells):
        config = RunConfig(
            taskset=cell.taskset.name,
            harness=cell.harness.name,
            harness_version="1.0",
            model=cell.model.name,
            sandbox="local",
            attempts=ATTEMPTS,
        )
        await write_cell(cell_directory(root, cell.key), config, whole, number, tasks)
    return len(plan.cells) * tasks * ATTEMPTS


async def write_cell(directory: Path, config: RunConfig, whole: Rollout, number: int, tasks: int) -> None:
    draw = random.Random(number)
    planned = [
        Planned(
            id=f"{draw.getrandbits(80):020x}",
            task=f"django__django-{10_000 + task}",
            attempt=attempt,
            seed=attempt,
        )
        for task in range(tasks)
        for attempt in range(ATTEMPTS)
    ]
    async with await RunWriter.open(directory, config) as writer:
        await writer.plan(planned)
        waiting = iter([ended(whole, item, draw) for item in planned])

        async def some() -> None:
            for rollout in waiting:
                await writer.finish(rollout)

        await asyncio.gather(*(some() for _ in range(AT_ONCE)))


def ended(whole: Rollout, item: Planned, draw: random.Random) -> Rollout:
    """One that passed, did not, or failed by no doing of the agent."""
    changes: dict[str, object] = {
        "id": item.id,
        "task": whole.task.model_copy(update={"id": item.task}),
        "attempt": item.attempt,
        "cost_usd": draw.random(),
        "finished_at": 10 + 300 * draw.random(),
        "reward": RewardResult(score=float(draw.random() < 0.5)),
    }
    if draw.random() < 0.06:
        outcome, attribution = draw.choice(FAILED)
        changes |= {"outcome": outcome, "attribution": attribution, "reward": None}
    return whole.model_copy(update=changes)


if __name__ == "__main__":
    sys.exit(main())
