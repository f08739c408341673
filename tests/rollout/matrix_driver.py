"""A driver of a matrix, to be killed: says which rollouts it was given.

python matrix_driver.py OUT
"""

from __future__ import annotations

import asyncio
import sys

from orchard_core.rollout.matrix.front import run_matrix
from orchard_core.rollout.matrix.key import CellKey
from orchard_core.rollout.matrix.plan import MatrixShared
from orchard_core.rollout.matrix.run import MatrixOptions
from orchard_core.rollout.matrix.watching import NobodyWatches
from orchard_core.rollout.store.state import RunState
from orchard_core.testing import FakeHarness


class Saying(NobodyWatches):
    """Says that a cell was opened."""

    def opened(self, key: CellKey, state: RunState) -> None:
        say("opened")


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


async def main(out: str) -> None:
    items = run_matrix(
        harnesses=["react", FakeHarness()],
        models=["oracle"],
        tasksets=["workbench:3"],
        shared=MatrixShared(attempts=2),
        options=MatrixOptions(concurrency=3),
        out=out,
        watcher=Saying(),
    )
    async for key, rollout in items:
        say(f"{key.harness} {rollout.id}")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
