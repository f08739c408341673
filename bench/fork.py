"""What a fork of a local sandbox costs, beside a bare copy of its layers and podman's way, as ratios.

    python bench/fork.py [--rounds 7] [--no-peers] [--json]

Floor: `cp -a --reflink=auto` of the same writable layers, in the same state directory. A fork is more: it
stops what runs, copies, and starts a sandbox whose agent has answered. Peer: podman through the docker SDK,
`commit` of a container with the same file and `run` of what that made, with the prerequisites of
bench/local_sandbox.py.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.peers.environment import LeftOut, make_environment, times
from bench.peers.podman import podman_service
from bench.table import Table, at_most, options, run_as_product
from orchard_core.sandbox.contract import Sandbox
from orchard_core.sandbox.local.config import LocalConfig
from orchard_core.sandbox.local.provider import LocalProvider
from orchard_core.sandbox.local.state import candidate_roots
from orchard_core.types.sandbox import SandboxSpec, Snapshot

LARGE = "head -c 100000000 /dev/urandom > large"
MANY = "for d in $(seq 100); do mkdir $d; for f in $(seq 100); do echo $d/$f > $d/$f; done; done"
ASKED = 300.0

Undo = Callable[[], Awaitable[None]]
Work = Callable[[], Awaitable[Undo]]


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--no-peers", action="store_true", help="the floor only; nothing is installed")
    given = parser.parse_args()
    table = Table("fork", as_json=given.json)
    with state_directory() as state:
        forked = run_as_product(lambda: measure(table, state, given.rounds))
    if not given.no_peers:
        add_podman(table, forked, given.rounds)
    return table.end()


@contextmanager
def state_directory() -> Iterator[Path]:
    """Beside the one that users have, so that it is on the same disk."""
    beside = candidate_roots(None)[0].parent
    with tempfile.TemporaryDirectory(prefix="orchard-bench-", dir=beside) as folder:
        yield Path(folder)


async def measure(table: Table, state: Path, rounds: int) -> float:
    """All rows of ours; answers the milliseconds of the fork with one large file."""
    provider = LocalProvider(LocalConfig(state_dir=str(state)))
    async with await provider.create(SandboxSpec()) as sandbox:
        await sandbox.exec(LARGE)
        forked = await rows(table, provider, sandbox, "100 MB in one file", state, rounds)
    async with await provider.create(SandboxSpec()) as sandbox:
        await sandbox.exec(MANY)
        await rows(table, provider, sandbox, "10,000 small files", state, rounds)
    await provider.close()
    return forked


async def rows(
    table: Table, provider: LocalProvider, sandbox: Sandbox, what: str, state: Path, rounds: int
) -> float:
    """One child, snapshot, restore and, of the large file, eight children."""
    saved = await sandbox.snapshot()
    floors: list[float] = []

    async def taken(work: Work, rounds: int) -> float:
        """Median milliseconds, each round in turn with the floor."""
        ours = []
        for _ in range(rounds):
            floors.append(copy(state / "drivers", sandbox.id))
            started = time.perf_counter()
            undo = await work()
            ours.append(1e3 * (time.perf_counter() - started))
            await undo()
        return statistics.median(ours)

    works = Works(provider, sandbox, saved)
    one = await taken(lambda: works.fork(1), rounds)
    both = {"snapshot": await taken(works.save, rounds), "restore": await taken(works.restore, rounds)}
    large = what.startswith("100 MB")
    eight = await taken(lambda: works.fork(8), max(3, rounds // 2)) if large else 0.0
    floor = statistics.median(floors)
    bound = at_most(ASKED) if large else None
    table.row(f"fork, {what}", one, "ms", peer="cp -a --reflink=auto", beside=floor, asked=bound)
    for name, value in both.items():
        table.row(f"{name}, {what}", value, "ms", peer="cp -a --reflink=auto", beside=floor)
    if large:
        table.row(f"8 forks, {what}", eight, "ms", peer="8 x cp -a --reflink=auto", beside=8 * floor)
    await provider.discard(saved)
    return one


class Works:
    """What is timed; each answers how it is undone."""

    def __init__(self, provider: LocalProvider, sandbox: Sandbox, saved: Snapshot) -> None:
        self._provider = provider
        self._sandbox = sandbox
        self._saved = saved

    async def save(self) -> Undo:
        made = await self._sandbox.snapshot()
        return lambda: self._provider.discard(made)

    async def restore(self) -> Undo:
        return (await self._provider.create(SandboxSpec(), restore=self._saved)).close

    async def fork(self, count: int) -> Undo:
        made = await self._sandbox.fork(count)

        async def close() -> None:
            for one in made:
                await one.close()

        return close


def copy(drivers: Path, sandbox_id: str) -> float:
    """Milliseconds of the floor."""
    (box,) = drivers.glob(f"*/boxes/{sandbox_id}")
    target = box.parent.parent / "floor"
    target.mkdir()
    layers = [path for path in box.iterdir() if path.is_dir() and path.suffix != ".work"]
    started = time.perf_counter()
    subprocess.run(["cp", "-a", "--reflink=auto", *layers, target], check=True)
    taken = 1e3 * (time.perf_counter() - started)
    shutil.rmtree(target)
    return taken


def add_podman(table: Table, forked: float, rounds: int) -> None:
    """Podman's row, or one line that says why there is none."""
    with tempfile.TemporaryDirectory(prefix="orchard-bench-") as folder:
        try:
            python = make_environment(Path(folder) / "venv")
            with podman_service(Path(folder) / "podman") as socket:
                taken = times(python, "podman_commit.py", str(max(3, rounds // 2)), str(socket))
        except LeftOut as error:
            table.note(f"podman left out: {error}")
            return
    peer = "podman commit and run"
    table.row("fork, 100 MB in one file", forked, "ms", peer=peer, beside=1e3 * statistics.median(taken))


if __name__ == "__main__":
    sys.exit(main())
