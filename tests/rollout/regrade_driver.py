"""A driver to be killed while it grades a run again: says what it was given.

python regrade_driver.py OUT
"""

from __future__ import annotations

import asyncio
import sys

from orchard_core import Evidence, Grading
from orchard_core.rollout.regrading import regrade_run
from orchard_core.testing import FakeProvider, FakeReward, FakeTaskSet

COUNT = 8


async def right(evidence: Evidence, grading: Grading) -> float:
    return 1.0


async def main(out: str) -> None:
    tasks = list(FakeTaskSet.of(COUNT).tasks())
    taskset = FakeTaskSet(tasks, rewards={task.id: FakeReward(right) for task in tasks})
    async for result in regrade_run(out, taskset=taskset, provider=FakeProvider(), concurrency=1):
        sys.stdout.write(f"{result.rollout}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
