"""Figures of the in-sandbox agent, each beside a peer or a floor measured in the same run.

python bench/agent.py [--size-mb 1024] [--dir DIR] [--json]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import secrets
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import ClientSession, ClientTimeout, UnixConnector, web

from bench.table import Of, Table, at_least, at_most, options, run_as_product
from orchard_core.sandbox.agent import AgentClient, agent_binary
from orchard_core.types.sandbox import AgentEndpoint

BLOCK = 1 << 20
TRUE = shutil.which("true") or "/bin/true"


@asynccontextmanager
async def running_agent(place: Path) -> AsyncIterator[tuple[AgentClient, subprocess.Popen[bytes], float]]:
    """An agent, and how many seconds passed from its spawn to its first answer."""
    socket = place / f"agent-{secrets.token_hex(4)}"
    token = secrets.token_hex(16)
    reading, writing = os.pipe()
    os.write(writing, token.encode())
    os.close(writing)
    command = [str(agent_binary()), "--listen", f"unix:{socket}", "--sandbox-id", "bench"]
    started = time.perf_counter()
    process = subprocess.Popen([*command, "--token-fd", str(reading)], pass_fds=[reading])
    os.close(reading)
    async with AgentClient(AgentEndpoint(url=f"unix:{socket}", token=token, sandbox_id="bench")) as client:
        await client.wait_ready()
        ready = time.perf_counter() - started
        try:
            yield client, process, ready
        finally:
            await client.shutdown()
            process.wait(10)


def resident_mb(pid: int) -> float:
    """Resident memory of a process, from the outside."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


async def median_ms(call: Callable[[], Awaitable[object]], count: int) -> float:
    times = []
    for _ in range(count):
        started = time.perf_counter()
        await call()
        times.append(time.perf_counter() - started)
    return statistics.median(times) * 1e3


async def bare_true() -> None:
    process = await asyncio.create_subprocess_exec(TRUE, stdin=subprocess.DEVNULL)
    await process.wait()


async def piped_true() -> None:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(TRUE, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe)
    await process.communicate()


async def blocks(count: int, block: bytes) -> AsyncIterator[bytes]:
    for _ in range(count):
        yield block


async def timed_mb_s(size_mb: int, work: Awaitable[object]) -> float:
    started = time.perf_counter()
    await work
    return size_mb / (time.perf_counter() - started)


async def drain(client: AgentClient, path: Path) -> None:
    async for _ in client.read(str(path)):
        pass


async def peak_during(pid: int, work: Awaitable[float]) -> tuple[float, float]:
    """The result of the work, and the largest resident memory seen meanwhile."""
    task = asyncio.ensure_future(work)
    peak = resident_mb(pid)
    while not task.done():
        peak = max(peak, resident_mb(pid))
        await asyncio.sleep(0.01)
    return task.result(), peak


class PlainServer:
    """The peer for files: aiohttp as it comes, in a process of its own, over a Unix socket."""

    def __init__(self, place: Path) -> None:
        self._socket = place / "plain"
        self._process: subprocess.Popen[bytes] | None = None

    async def __aenter__(self) -> ClientSession:
        command = [sys.executable, __file__, "--serve-plain", str(self._socket)]
        self._process = subprocess.Popen(command)
        while not self._socket.exists():
            await asyncio.sleep(0.02)
        timeout = ClientTimeout(total=None)
        self._session = ClientSession(connector=UnixConnector(str(self._socket)), timeout=timeout)
        return self._session

    async def __aexit__(self, *exc: object) -> None:
        await self._session.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()


def serve_plain(socket: str) -> None:
    async def get(request: web.Request) -> web.FileResponse:
        return web.FileResponse(request.query["path"])

    async def put(request: web.Request) -> web.Response:
        with Path(request.query["path"]).open("wb") as file:
            async for piece in request.content.iter_chunked(256 * 1024):
                file.write(piece)
        return web.Response()

    app = web.Application(client_max_size=1 << 40)
    app.add_routes([web.get("/", get), web.put("/", put)])
    web.run_app(app, path=socket, print=None)


async def plain_figures(place: Path, size_mb: int, block: bytes) -> tuple[float, float]:
    path = place / "plain-file"
    query = {"path": str(path)}

    async def put(session: ClientSession) -> None:
        async with session.put("http://x/", params=query, data=blocks(size_mb, block)) as answer:
            answer.raise_for_status()

    async def get(session: ClientSession) -> None:
        async with session.get("http://x/", params=query) as answer:
            async for _ in answer.content.iter_chunked(256 * 1024):
                pass

    async with PlainServer(place) as session:
        written = await timed_mb_s(size_mb, put(session))
        read = await timed_mb_s(size_mb, get(session))
    path.unlink()
    return written, read


async def measure(table: Table, place: Path, size_mb: int) -> None:
    block = os.urandom(BLOCK)
    readies = []
    for _ in range(15):
        async with running_agent(place) as (_, _, ready):
            readies.append(ready * 1e3)
    spawn, ready = await median_ms(bare_true, 50), statistics.median(readies)
    table.row("ready after spawn", ready, "ms", peer="spawn of true", beside=spawn, asked=at_most(20))
    async with running_agent(place) as (client, process, _):
        await asyncio.sleep(0.3)
        idle, python = resident_mb(process.pid), resident_mb(os.getpid())
        table.row("resident, idle", idle, "MB", peer="this Python process", beside=python, asked=at_most(12))
        await measure_exec(table, client)
        await measure_files(table, client, process.pid, place, size_mb, block)


async def measure_exec(table: Table, client: AgentClient) -> None:
    """The three ways take turns, so that a disturbance meets all."""
    ways = {"own": lambda: client.exec([TRUE]), "bare": bare_true, "piped": piped_true}
    await median_ms(ways["own"], 50)
    rounds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(10):
        for name, call in ways.items():
            rounds[name].append(await median_ms(call, 40))
    own, bare, piped = (statistics.median(rounds[name]) for name in ways)
    table.row("exec true, p50", own, "ms", peer="bare subprocess", beside=bare, asked=at_most(2, Of.OVER))
    table.row("exec true, p50", own, "ms", peer="subprocess with pipes", beside=piped)
    started = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for _ in range(200):
            group.create_task(client.exec([TRUE]))
    rate = 200 / (time.perf_counter() - started)
    table.row("exec true, 200 at once", rate, "1/s", peer="one after the other", beside=1e3 / own)


async def measure_files(
    table: Table, client: AgentClient, pid: int, place: Path, size_mb: int, block: bytes
) -> None:
    path = place / "file"
    work = timed_mb_s(size_mb, client.write(str(path), blocks(size_mb, block)))
    written, peak_in = await peak_during(pid, work)
    read, peak_out = await peak_during(pid, timed_mb_s(size_mb, drain(client, path)))
    started = time.perf_counter()
    subprocess.run(["cp", path, place / "copy"], check=True)
    copied = size_mb / (time.perf_counter() - started)
    path.unlink()
    (place / "copy").unlink()
    plain_written, plain_read = await plain_figures(place, size_mb, block)
    for way, rate, plain in (("write", written, plain_written), ("read", read, plain_read)):
        name = f"{way} {size_mb} MB"
        table.row(name, rate, "MB/s", peer="cp", beside=copied, asked=at_least(300))
        table.row(name, rate, "MB/s", peer="aiohttp, as it comes", beside=plain)
    peak, python = max(peak_in, peak_out), resident_mb(os.getpid())
    table.row("resident, moving it", peak, "MB", peer="this Python process", beside=python, asked=at_most(30))


def roomy(size_mb: int) -> Path | None:
    """Memory, when it holds the file and its copy."""
    memory = Path("/dev/shm")
    if memory.is_dir() and shutil.disk_usage(memory).free > 3 * size_mb * BLOCK:
        return memory
    return None


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--size-mb", type=int, default=1024)
    parser.add_argument("--dir", type=Path, help="where the files go; a temporary place by default")
    parser.add_argument("--serve-plain", default="", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve_plain:
        serve_plain(given.serve_plain)
        return 0
    table = Table("agent", as_json=given.json)
    with tempfile.TemporaryDirectory(dir=given.dir or roomy(given.size_mb)) as place:
        run_as_product(lambda: measure(table, Path(place), given.size_mb))
    return table.end()


if __name__ == "__main__":
    sys.exit(main())
