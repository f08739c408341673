"""Added time per call: the gateway beside a bare aiohttp pass-through proxy, against one instant upstream.

    python bench/gateway.py [--calls 2000] [--turns 10] [--json]

Every part runs in a process of its own. A call is a chat completion of a conversation that grows from 2 to
2 x TURNS messages of 500 bytes. `added` is what a way takes per call (the median at 1, by throughput at
200) beyond the same load sent straight to the upstream.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import statistics
import sys
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from time import perf_counter
from typing import Any

from bench.table import Of, Table, at_least, at_most, options, run_as_product

BOUND = 1.5
"""The gateway may add so many times what the bare proxy adds."""
STEADY = 0.8
"""No collapse: with 200 under way at least so many times the calls per second of one at a time."""

REPLY = json.dumps(
    {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": "instant",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "x" * 400},
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 100, "completion_tokens": 100, "total_tokens": 200},
    }
).encode()


class InstantUpstream(asyncio.Protocol):
    """Answers each request as soon as its body is whole."""

    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(REPLY)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.buffer = b""

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while (end := self.buffer.find(b"\r\n\r\n")) >= 0:
            head = self.buffer[:end].lower()
            length = int(head.partition(b"content-length:")[2].split(b"\r\n")[0])
            if len(self.buffer) < end + 4 + length:
                return
            self.buffer = self.buffer[end + 4 + length :]
            self.transport.write(self.head + REPLY)  # type: ignore[attr-defined]


async def serve_upstream(ready: Callable[[Any], None], _: int) -> None:
    server = await asyncio.get_running_loop().create_server(InstantUpstream, "127.0.0.1", 0)
    ready((server.sockets[0].getsockname()[1], ["none"]))
    await asyncio.Event().wait()


async def serve_proxy(ready: Callable[[Any], None], upstream: int) -> None:
    """The floor: an aiohttp server that hands the body on by an aiohttp client, and nothing else."""
    from aiohttp import ClientSession, TCPConnector, web

    async with ClientSession(connector=TCPConnector(limit=0)) as client:

        async def forward(request: web.Request) -> web.Response:
            body = await request.read()
            headers = {"Content-Type": "application/json", "Authorization": "Bearer x"}
            url = f"http://127.0.0.1:{upstream}{request.path}"
            async with client.post(url, data=body, headers=headers) as answer:
                return web.Response(
                    body=await answer.read(), status=answer.status, content_type=answer.content_type
                )

        app = web.Application(client_max_size=1 << 30)
        app.router.add_post("/v1/chat/completions", forward)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        ready((runner.addresses[0][1], ["none"]))
        await asyncio.Event().wait()


async def serve_gateway(ready: Callable[[Any], None], upstream: int) -> None:
    from orchard_core.gateway.contract import SessionContext
    from orchard_core.gateway.openai import OpenAIConfig, OpenAIModel
    from orchard_core.gateway.server import Gateway

    config = OpenAIConfig(model="instant", base_url=f"http://127.0.0.1:{upstream}/v1", token_ids="off")
    async with Gateway() as gateway:
        model = OpenAIModel(config)
        sessions = [await gateway.open_session(model, SessionContext()) for _ in range(200)]
        ready((gateway.address.port, [session.endpoint.api_key for session in sessions]))
        await asyncio.Event().wait()


def run_server(serve: Callable[..., Coroutine[Any, Any, None]], pipe: Connection, upstream: int) -> None:
    run_as_product(lambda: serve(pipe.send, upstream))


@dataclass(frozen=True)
class Way:
    """A server that takes calls."""

    port: int
    keys: Sequence[str]
    pid: int


@contextmanager
def server(serve: Callable[..., Coroutine[Any, Any, None]], upstream: int = 0) -> Iterator[Way]:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=run_server, args=(serve, theirs, upstream), daemon=True)
    process.start()
    try:
        port, keys = ours.recv()
        yield Way(port, keys, process.pid or 0)
    finally:
        process.kill()
        process.join()


def bodies(turns: int, user: int) -> list[bytes]:
    """The requests of one conversation."""
    made, messages = [], [{"role": "system", "content": f"user {user} " + "s" * 500}]
    for turn in range(turns):
        messages.append({"role": "user", "content": f"{turn} " + "u" * 500})
        made.append(json.dumps({"model": "instant", "messages": messages}).encode())
        messages.append({"role": "assistant", "content": "x" * 400})
    return made


@dataclass(frozen=True)
class Load:
    """Times of one run, seconds."""

    times: Sequence[float]
    total: float
    cpu: float = 0.0

    @property
    def p50(self) -> float:
        return statistics.median(self.times)

    @property
    def p99(self) -> float:
        return sorted(self.times)[int(len(self.times) * 0.99)]

    def cost(self, clients: int) -> float:
        """Time per call: the median when calls come one by one, by throughput when many are under way."""
        return self.p50 if clients == 1 else self.mean

    @property
    def mean(self) -> float:
        """Time per call by throughput."""
        return self.total / len(self.times)


async def converse(port: int, key: str, requests: Sequence[bytes], times: list[float]) -> None:
    """One client on one connection, as light as can be."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for body in requests:
        began = perf_counter()
        writer.write(
            b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
            b"authorization: Bearer %b\r\ncontent-length: %d\r\n\r\n" % (key.encode(), len(body)) + body
        )
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200"), head
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
        await reader.readexactly(length)
        times.append(perf_counter() - began)
    writer.close()


async def load(port: int, keys: Sequence[str], clients: int, calls: int, turns: int) -> Load:
    talks = max(1, calls // (clients * turns))
    plans = [
        [body for talk in range(talks) for body in bodies(turns, client * 1000 + talk)]
        for client in range(clients)
    ]
    times: list[float] = []
    began = perf_counter()
    await asyncio.gather(
        *(converse(port, keys[at % len(keys)], plan, times) for at, plan in enumerate(plans))
    )
    return Load(times, perf_counter() - began)


def cpu_seconds(pid: int) -> float:
    """User and system time a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(way: Way, clients: int, calls: int, turns: int) -> Load:
    """One run, with what the server's process used."""
    before = cpu_seconds(way.pid)
    run = run_as_product(lambda: load(way.port, way.keys, clients, calls, turns))
    return replace(run, cpu=(cpu_seconds(way.pid) - before) / len(run.times))


def best(ways: dict[str, Way], clients: int, calls: int, turns: int, rounds: int) -> dict[str, Load]:
    """The least disturbed run of each way; the ways take turns, so that a disturbance meets all."""
    runs: dict[str, list[Load]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            runs[name].append(measure(way, clients, calls, turns))
    return {name: min(made, key=lambda run: run.mean) for name, made in runs.items()}


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--calls", type=int, default=2000, help="calls per run")
    parser.add_argument("--turns", type=int, default=10, help="turns of a conversation")
    parser.add_argument("--rounds", type=int, default=3, help="rounds, of which the least disturbed counts")
    given = parser.parse_args()
    table = Table("gateway", as_json=given.json)
    rates = {}
    with (
        server(serve_upstream) as upstream,
        server(serve_proxy, upstream.port) as proxy,
        server(serve_gateway, upstream.port) as gateway,
    ):
        for clients in (1, 200):
            ways = {"straight": upstream, "bare proxy": proxy, "gateway": gateway}
            best(ways, clients, 200, given.turns, 1)
            runs = best(ways, clients, given.calls, given.turns, given.rounds)
            report(table, clients, runs)
            rates[clients] = 1 / runs["gateway"].mean
    table.row(
        "calls, 200 at once",
        rates[200],
        "1/s",
        peer="calls, one at a time",
        beside=rates[1],
        asked=at_least(STEADY, Of.RATIO),
    )
    return table.end()


def report(table: Table, clients: int, runs: dict[str, Load]) -> None:
    """The figure, and what lies behind it."""
    straight = runs["straight"].cost(clients)
    added = {name: (run.cost(clients) - straight) * 1e3 for name, run in runs.items()}
    table.row(
        f"added per call, {clients} at once",
        added["gateway"],
        "ms",
        peer="a bare aiohttp proxy adds",
        beside=added["bare proxy"],
        asked=at_most(BOUND, Of.RATIO),
    )
    for name, run in runs.items():
        table.note(
            f"{name:10} p50 {run.p50 * 1e3:8.3f} ms  p99 {run.p99 * 1e3:8.3f} ms  "
            f"{1 / run.mean:7.0f} calls/s  server CPU {run.cpu * 1e3:.3f} ms a call"
        )


if __name__ == "__main__":
    sys.exit(main())
