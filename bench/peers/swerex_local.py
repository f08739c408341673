"""Times of SWE-ReX local (no isolation): start to the first answer. Runs in the environment of the peers."""

from __future__ import annotations

import asyncio
import json
import sys
import time

from swerex.deployment.local import LocalDeployment  # type: ignore[import-not-found]
from swerex.runtime.abstract import Command  # type: ignore[import-not-found]


async def measure(rounds: int) -> list[float]:
    taken = []
    for _ in range(rounds):
        started = time.perf_counter()
        deployment = LocalDeployment()
        await deployment.start()
        await deployment.runtime.execute(Command(command=["true"]))
        taken.append(time.perf_counter() - started)
        await deployment.stop()
    return taken


if __name__ == "__main__":
    print("\nTAKEN " + json.dumps(asyncio.run(measure(int(sys.argv[1])))))
