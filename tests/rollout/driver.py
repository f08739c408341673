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
from orchard_core.types.events import Event, RunStarted


def say_started(event: Event) -> None:
    if isinstance(event, RunStarted):
        say("started")


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


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
        observers=[("start", say_started)],
    )
    async for rollout in rollouts:
        say(rollout.id)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
