"""Measures one rollout and dies by its own hand after so many continuations: for tests of what then is left.

python -m tests.datasets.credit.branch.driver DIRECTORY CONTINUATIONS
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

from orchard_core.rollout.branching.branch import Branch

from .making import bench

OPTIONS: dict[str, Any] = {"k": 6, "grid": 3}


async def main(directory: Path, count: int) -> None:
    """Measure the first unresolved rollout, as the test does."""
    done: list[Branch] = []

    def on_branch(branch: Branch) -> None:
        done.append(branch)
        if len(done) == count:
            os.kill(os.getpid(), signal.SIGKILL)

    async with bench(directory) as steps:
        rollout = await steps.unresolved()
        estimator = steps.estimator(on_branch=on_branch, concurrency=3, **OPTIONS)
        await estimator.estimate(steps.item(rollout))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
