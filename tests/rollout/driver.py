"""A driver to be killed: runs workbench tasks with the oracle and says what was reported.

python driver.py OUT SANDBOX
"""

from __future__ import annotations

import asyncio
import sys

from orchard_core.gateway.scripted import OracleConfig, OracleModel
from orchard_core.rollout.front import run_rollouts
from orchard_core.tasks.workbench.taskset import Workbench, WorkbenchConfig
from orchard_core.testing import FakeHarness


async def main(out: str, sandbox: str) -> None:
    rollouts = run_rollouts(
        Workbench(WorkbenchConfig(count=6)),
        harness=FakeHarness(),
        model=OracleModel(OracleConfig()),
        sandbox=sandbox,
        attempts=4,
        concurrency=4,
        out=out,
        resume=True,
    )
    async for rollout in rollouts:
        sys.stdout.write(f"{rollout.id} {rollout.score}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
