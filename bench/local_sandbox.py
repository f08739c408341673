"""How fast local sandboxes come up, beside their floor and their peers, as ratios.

    python bench/local_sandbox.py [--rounds 30] [--alive 200] [--no-peers] [--json]

Floor: a bare `bwrap --unshare-all true`. Peers: SWE-ReX's local runtime (no isolation), installed from PyPI
into an environment that is thrown away, and podman through the docker SDK, where `podman`, `runc` and a
static `busybox` are installed (Debian: apt install podman runc busybox-static), as a private service.
"""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench.peers.environment import LeftOut, make_environment, times
from bench.peers.podman import podman_service
from bench.table import Table, at_least, at_most, options, run_as_product
from orchard_core.sandbox.local.bubblewrap import find_bwrap
from orchard_core.sandbox.local.provider import LocalProvider
from orchard_core.types.sandbox import SandboxSpec

CREATE = "create to first exec answered, p50"


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--alive", type=int, default=200)
    parser.add_argument("--no-peers", action="store_true", help="the floor only; nothing is installed")
    given = parser.parse_args()
    table = Table("local_sandbox", as_json=given.json)
    floor, ours = run_as_product(lambda: alternate(given.rounds))
    add(table, "bare bwrap", floor, ours, bounded=True)
    if not given.no_peers:
        peers(table, ours, given.rounds)
    run_as_product(lambda: alive(table, given.alive))
    return table.end()


def add(table: Table, peer: str, its: list[float], ours: list[float], *, bounded: bool = False) -> None:
    mine, beside = 1e3 * statistics.median(ours), 1e3 * statistics.median(its)
    table.row(CREATE, mine, "ms", peer=peer, beside=beside, asked=at_most(60) if bounded else None)
    for name, taken in ((peer, its), ("orchard local", ours)) if bounded else ((peer, its),):
        p95 = sorted(taken)[int(0.95 * (len(taken) - 1))]
        table.note(f"{name}: p95 {1e3 * p95:.1f} ms of {len(taken)} rounds")


async def alternate(rounds: int) -> tuple[list[float], list[float]]:
    """Seconds of the floor and of ours, in turns, so that a disturbance meets both."""
    floor, ours = [], []
    provider = LocalProvider()
    await provider.capabilities()
    bare()
    for _ in range(rounds):
        started = time.perf_counter()
        bare()
        floor.append(time.perf_counter() - started)
        started = time.perf_counter()
        sandbox = await provider.create(SandboxSpec())
        assert (await sandbox.exec(["true"])).ok
        ours.append(time.perf_counter() - started)
        await sandbox.close()
    await provider.close()
    return floor, ours


def bare() -> None:
    command = [str(find_bwrap()), "--unshare-all", "--ro-bind", "/usr", "/usr"]
    for name in ("bin", "lib", "lib64"):
        command += ["--symlink", f"usr/{name}", f"/{name}"]
    subprocess.run([*command, "--proc", "/proc", "--dev", "/dev", "/usr/bin/true"], check=True)


def peers(table: Table, ours: list[float], rounds: int) -> None:
    """Each peer's row, or one line that says why there is none."""
    few = str(max(3, rounds // 5))
    with tempfile.TemporaryDirectory(prefix="orchard-bench-") as folder:
        try:
            python = make_environment(Path(folder) / "venv")
        except LeftOut as error:
            table.note(f"SWE-ReX and podman left out: {error}")
            return

        def podman() -> list[float]:
            with podman_service(Path(folder) / "podman") as socket:
                return times(python, "podman_docker.py", few, str(socket))

        measures: dict[str, Callable[[], list[float]]] = {
            "SWE-ReX local, no isolation": lambda: times(python, "swerex_local.py", few),
            "podman through the docker SDK": podman,
        }
        for name, measure in measures.items():
            try:
                add(table, name, measure(), ours)
            except LeftOut as error:
                table.note(f"{name} left out: {error}")


async def alive(table: Table, count: int) -> None:
    """Make many, keep all of them, use each, end them."""
    provider = LocalProvider()
    await provider.capabilities()
    started = time.perf_counter()
    made = await asyncio.gather(
        *(provider.create(SandboxSpec()) for _ in range(count)), return_exceptions=True
    )
    created = time.perf_counter()
    boxes = [one for one in made if not isinstance(one, BaseException)]
    results = await asyncio.gather(*(one.exec(["echo", one.id]) for one in boxes), return_exceptions=True)
    good = sum(
        not isinstance(result, BaseException) and result.stdout == f"{one.id}\n".encode()
        for one, result in zip(boxes, results, strict=True)
    )
    used = time.perf_counter()
    await provider.close()
    closed = time.perf_counter()
    name = f"{count} alive at once, answered rightly"
    table.row(name, 100 * good / count, "%", peer="all of them", beside=100.0, asked=at_least(100))
    table.note(
        f"created in {created - started:.2f} s, an exec in each {used - created:.2f} s, "
        f"closed in {closed - used:.2f} s"
    )


if __name__ == "__main__":
    sys.exit(main())
