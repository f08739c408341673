"""A large file up and down through the orchestrator, beside the same straight to a sandbox's agent.

    python bench/env_files.py [--size-mb 1024] [--rounds 3] [--json]

The client sends and takes blocks with blocking sockets in a thread; meanwhile /health is asked every 10 ms
and the service's resident memory is read from outside. The fastest of the rounds counts for both ways, which
take turns; the largest memory and every answer of /health count.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar
from urllib.parse import urlsplit

from bench.agent import resident_mb
from bench.served import Client, Served, quantile, serving
from bench.table import Table, at_least, at_most, options, run_as_product
from orchard_core.sandbox.agent_sandbox import AgentSandbox
from orchard_core.sandbox.local.provider import LocalProvider
from orchard_core.types.sandbox import AgentEndpoint, SandboxSpec

BLOCK = bytes(1 << 20)
NAME = "files"
FILE = "/tmp/large"
ASKED_MB_S = 200
MEMORY_MB = 150
HEALTH_MS = 50
PAUSE_S = 0.01
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Way:
    """Where a file's bytes go."""

    connect: Callable[[], socket.socket]
    """A fresh connection."""
    target: str
    """Path and query of the file."""
    headers: tuple[str, ...] = ()
    """Lines sent with each request."""


@dataclass(kw_only=True)
class Seen:
    """What the service was like meanwhile."""

    health: list[float] = field(default_factory=list)
    """Times of answers, seconds."""
    memory_mb: float = 0.0
    """The largest seen."""


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--size-mb", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    table = Table("env_files", as_json=given.json)
    with serving("--provider", "local", "--log-level", "warning") as served:
        run_as_product(lambda: measured(table, served, given.size_mb, given.rounds))
    return table.end()


async def measured(table: Table, served: Served, size_mb: int, rounds: int) -> None:
    client, provider = Client(served.host, served.port), LocalProvider()
    await client.call("POST", "/sandboxes", {"image": "host", "sandbox_id": NAME})
    await client.call("GET", f"/sandboxes/{NAME}/wait")
    box = await provider.create(SandboxSpec())
    idle = Seen()
    await watched(served, idle, asyncio.sleep(1.0))
    ways = {"service": through(served), "agent": await straight(box)}
    seen, best = Seen(), dict.fromkeys((f"{kind} {way}" for kind in ("up", "down") for way in ways), 0.0)
    for _ in range(rounds):
        for name, way in ways.items():
            for kind, work in (("up", up), ("down", down)):
                done = asyncio.to_thread(work, way, size_mb)
                rate = await (watched(served, seen, done) if name == "service" else done)
                best[f"{kind} {name}"] = max(best[f"{kind} {name}"], rate)
    await box.close()
    await provider.close()
    await client.call("DELETE", f"/sandboxes/{NAME}")
    client.close()
    tell(table, size_mb, best, seen, idle)


async def watched(served: Served, seen: Seen, work: Awaitable[T]) -> T:
    """The result of the work; the service is asked how it does until then."""
    task, client = asyncio.ensure_future(work), Client(served.host, served.port)
    while not task.done():
        began = time.perf_counter()
        await client.raw("GET", "/health")
        seen.health.append(time.perf_counter() - began)
        seen.memory_mb = max(seen.memory_mb, resident_mb(served.pid))
        await asyncio.sleep(PAUSE_S)
    client.close()
    return task.result()


def through(served: Served) -> Way:
    return Way(
        connect=lambda: socket.create_connection((served.host, served.port)),
        target=f"/v2/sandboxes/{NAME}/agent/v1/files?path={FILE}",
    )


async def straight(box: object) -> Way:
    """To the agent of a sandbox of this process."""
    assert isinstance(box, AgentSandbox)
    async with box.lent() as client:
        endpoint = client.endpoint
    return Way(
        connect=lambda: _dial(endpoint),
        target=f"/v1/files?path={FILE}",
        headers=(f"authorization: Bearer {endpoint.token}", f"x-orchard-sandbox: {endpoint.sandbox_id}"),
    )


def _dial(endpoint: AgentEndpoint) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX)
    sock.connect(urlsplit(endpoint.url).path)
    return sock


def up(way: Way, size_mb: int) -> float:
    """MB (2^20 bytes) a second."""
    with way.connect() as sock:
        began = time.perf_counter()
        sock.sendall(_head("PUT", way, f"content-length: {size_mb << 20}"))
        for _ in range(size_mb):
            sock.sendall(BLOCK)
        said = sock.recv(1 << 16)
        seconds = time.perf_counter() - began
    _check(said)
    return size_mb / seconds


def down(way: Way, size_mb: int) -> float:
    """MB (2^20 bytes) a second."""
    room = bytearray(len(BLOCK))
    with way.connect() as sock:
        began = time.perf_counter()
        sock.sendall(_head("GET", way))
        said = sock.recv(1 << 16)
        left = (size_mb << 20) - len(said.partition(b"\r\n\r\n")[2])
        while left:
            got = sock.recv_into(room)
            if not got:
                raise RuntimeError(f"the file was cut {left} bytes before its end")
            left -= got
        seconds = time.perf_counter() - began
    _check(said)
    return size_mb / seconds


def _head(method: str, way: Way, *more: str) -> bytes:
    lines = (f"{method} {way.target} HTTP/1.1", "host: 127.0.0.1", *way.headers, *more, "", "")
    return "\r\n".join(lines).encode()


def _check(said: bytes) -> None:
    if not said.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(f"not 200: {said[:300]!r}")


def tell(table: Table, size_mb: int, best: dict[str, float], seen: Seen, idle: Seen) -> None:
    for kind in ("up", "down"):
        table.row(
            f"{size_mb} MB {kind} through the service", best[f"{kind} service"], "MB/s",
            peer="straight to the agent", beside=best[f"{kind} agent"], asked=at_least(ASKED_MB_S),
        )  # fmt: skip
    table.row(
        "its memory meanwhile", seen.memory_mb, "MB",
        peer="the same idle", beside=idle.memory_mb, asked=at_most(MEMORY_MB),
    )  # fmt: skip
    table.row(
        "p99 of its /health meanwhile", quantile(seen.health, 0.99) * 1e3, "ms",
        peer="the same idle", beside=quantile(idle.health, 0.99) * 1e3, asked=at_most(HEALTH_MS),
    )  # fmt: skip
    table.note(f"{len(seen.health)} answers of /health, the slowest {max(seen.health) * 1e3:.0f} ms; "
               f"load {os.getloadavg()[0]:.1f}")  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
