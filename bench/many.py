"""A thousand local sandboxes through their whole life at once, beside as many bare `bwrap` that only sleep.

    python bench/many.py [--count 1000] [--json]

Each is created, runs four commands, and is deleted; all of them stand at the same time before the first ends.
Then the same through `orchard serve --provider local`, and 200 clients at once.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from itertools import pairwise

from bench.many_served import through_the_service
from bench.table import Table, at_least, at_most, options, run_as_product
from orchard_core.sandbox.contract import Sandbox
from orchard_core.sandbox.local.bubblewrap import find_bwrap
from orchard_core.sandbox.local.provider import LocalProvider
from orchard_core.types.sandbox import SandboxSpec

COMMANDS = 4


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--count", type=int, default=1000)
    given = parser.parse_args()
    table = Table("many", as_json=given.json)
    floor = bare(given.count)
    alone = run_as_product(lambda: whole_life(table, given.count, floor))
    through_the_service(table, given.count, COMMANDS, alone)
    return table.end()


def bare(count: int) -> float:
    """Seconds until so many namespaces stand, and are ended."""
    command = [str(find_bwrap()), "--unshare-all", "--ro-bind", "/usr", "/usr", "--die-with-parent"]
    for name in ("bin", "lib", "lib64"):
        command += ["--symlink", f"usr/{name}", f"/{name}"]
    command += ["--proc", "/proc", "--dev", "/dev", "/usr/bin/sleep", "100"]
    started = time.perf_counter()
    running = [subprocess.Popen(command) for _ in range(count)]
    for process in running:
        process.kill()
    for process in running:
        process.wait()
    return time.perf_counter() - started


async def whole_life(table: Table, count: int, floor: float) -> float:
    """Create all, then use all, then delete all; how many seconds that took."""
    provider = LocalProvider()
    await provider.capabilities()
    marks = [time.perf_counter()]
    made = await asyncio.gather(
        *(provider.create(SandboxSpec()) for _ in range(count)), return_exceptions=True
    )
    marks.append(time.perf_counter())
    boxes = [one for one in made if not isinstance(one, BaseException)]
    good = sum(await asyncio.gather(*(_used(box) for box in boxes)))
    marks.append(time.perf_counter())
    await asyncio.gather(*(box.close() for box in boxes))
    marks.append(time.perf_counter())
    await provider.close()
    created, used, closed = (after - before for before, after in pairwise(marks))
    table.row(
        f"{count} sandboxes, {COMMANDS} commands each", marks[-1] - marks[0], "s",
        peer="bare bwrap, asleep", beside=floor, asked=at_most(15),
    )  # fmt: skip
    table.row(
        "of them without a fault",
        100 * good / count,
        "%",
        peer="all of them",
        beside=100,
        asked=at_least(100),
    )
    table.note(f"created in {created:.1f} s, used in {used:.1f} s, deleted in {closed:.1f} s")
    return marks[-1] - marks[0]


async def _used(box: Sandbox) -> bool:
    told = [(await box.exec(["echo", f"{box.id} {n}"])).stdout for n in range(COMMANDS)]
    return told == [f"{box.id} {n}\n".encode() for n in range(COMMANDS)]


if __name__ == "__main__":
    sys.exit(main())
