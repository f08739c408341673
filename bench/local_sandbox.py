"""How fast local sandboxes come up, beside their floor and their peers, as ratios.

    python bench/local_sandbox.py [--rounds 30] [--alive 200] [--swerex PYTHON]

Floor: a bare `bwrap --unshare-all true`. Peers: SWE-ReX's local runtime, run by an interpreter of its own
environment (`python -m venv /tmp/rex && /tmp/rex/bin/pip install swe-rex`, then
`--swerex /tmp/rex/bin/python`), and podman through the docker SDK when its socket and an image `bench` are
there (`podman system service -t 0 unix:///tmp/podman.sock &`, `tar c -C ROOTFS . | podman import - bench`,
`pip install docker`).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from orchard_core.sandbox.local.bubblewrap import find_bwrap
from orchard_core.sandbox.local.provider import LocalProvider
from orchard_core.types.sandbox import SandboxSpec

_SWEREX = """
import asyncio, json, time, sys
from swerex.deployment.local import LocalDeployment
from swerex.runtime.abstract import Command

async def main(rounds):
    taken = []
    for _ in range(rounds):
        started = time.perf_counter()
        deployment = LocalDeployment()
        await deployment.start()
        await deployment.runtime.execute(Command(command=["true"]))
        taken.append(time.perf_counter() - started)
        await deployment.stop()
    print("\\nTAKEN " + json.dumps(taken))

asyncio.run(main(int(sys.argv[1])))
"""
_PODMAN_SOCKET = "/tmp/podman.sock"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--alive", type=int, default=200)
    parser.add_argument("--swerex", help="interpreter of an environment with swe-rex")
    options = parser.parse_args()
    floor = _repeat(_bare, options.rounds)
    ours = asyncio.run(_ours(options.rounds))
    _line("bare bwrap (floor)", floor, floor)
    _line("orchard local, create to first exec answered", ours, floor)
    _peer("SWE-ReX local runtime (no isolation)", lambda: _swerex(options.swerex, options.rounds), floor)
    _peer("podman through the docker SDK", lambda: _podman(max(3, options.rounds // 6)), floor)
    asyncio.run(_alive(options.alive))


def _repeat(work: Callable[[], None], rounds: int) -> list[float]:
    taken = []
    for _ in range(rounds):
        started = time.perf_counter()
        work()
        taken.append(time.perf_counter() - started)
    return taken


def _line(name: str, taken: list[float], floor: list[float]) -> None:
    p50, p95 = statistics.median(taken), sorted(taken)[int(0.95 * (len(taken) - 1))]
    ratio = p50 / statistics.median(floor)
    print(f"{name:<48} p50 {1000 * p50:8.1f} ms   p95 {1000 * p95:8.1f} ms   {ratio:6.1f} x floor")


def _peer(name: str, measure: Callable[[], list[float] | str], floor: list[float]) -> None:
    taken = measure()
    if isinstance(taken, str):
        print(f"{name:<48} left out: {taken}")
    else:
        _line(name, taken, floor)


def _bare() -> None:
    command = [str(find_bwrap()), "--unshare-all", "--ro-bind", "/usr", "/usr"]
    for name in ("bin", "lib", "lib64"):
        command += ["--symlink", f"usr/{name}", f"/{name}"]
    subprocess.run([*command, "--proc", "/proc", "--dev", "/dev", "/usr/bin/true"], check=True)


async def _ours(rounds: int) -> list[float]:
    provider = LocalProvider()
    await provider.capabilities()
    taken = []
    for _ in range(rounds):
        started = time.perf_counter()
        sandbox = await provider.create(SandboxSpec())
        assert (await sandbox.exec(["true"])).ok
        taken.append(time.perf_counter() - started)
        await sandbox.close()
    await provider.close()
    return taken


def _swerex(python: str | None, rounds: int) -> list[float] | str:
    if python is None:
        return "give --swerex PYTHON; see --help"
    done = subprocess.run([python, "-c", _SWEREX, str(rounds)], capture_output=True, text=True, check=False)
    found = [line for line in done.stdout.splitlines() if line.startswith("TAKEN ")]
    if done.returncode or not found:
        return (done.stderr.strip() or "it printed nothing").splitlines()[-1]
    taken: list[float] = json.loads(found[0].removeprefix("TAKEN "))
    return taken


def _podman(rounds: int) -> list[float] | str:
    try:
        import docker  # type: ignore[import-untyped]
    except ImportError:
        return "pip install docker; see --help"
    if not Path(_PODMAN_SOCKET).exists():
        return f"no podman service at {_PODMAN_SOCKET}; see --help"
    client = docker.DockerClient(base_url=f"unix://{_PODMAN_SOCKET}")

    def once() -> None:
        container = client.containers.run("bench", ["sleep", "1000"], detach=True, network_mode="none")
        assert container.exec_run(["true"]).exit_code == 0
        container.remove(force=True)

    return _repeat(once, rounds)


async def _alive(count: int) -> None:
    """Make many, keep all of them, use each, end them."""
    provider = LocalProvider()
    await provider.capabilities()
    started = time.perf_counter()
    made = await asyncio.gather(
        *(provider.create(SandboxSpec()) for _ in range(count)), return_exceptions=True
    )
    created = time.perf_counter()
    alive = [one for one in made if not isinstance(one, BaseException)]
    results = await asyncio.gather(*(one.exec(["echo", one.id]) for one in alive), return_exceptions=True)
    good = sum(
        not isinstance(result, BaseException) and result.stdout == f"{one.id}\n".encode()
        for one, result in zip(alive, results, strict=True)
    )
    used = time.perf_counter()
    await provider.close()
    print(
        f"{count} alive at once: {good} answered rightly ({100 * good / count:.1f}%), created in "
        f"{created - started:.2f} s, an exec in each {used - created:.2f} s, closed in "
        f"{time.perf_counter() - used:.2f} s, {os.cpu_count()} cores"
    )


if __name__ == "__main__":
    main()
