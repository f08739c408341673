"""What a hostile sandbox does to its neighbour's commands: their p99 through the service, beside that alone.

    python bench/env_neighbours.py [--count 300] [--json]

Both are sandboxes of `orchard serve --provider local`. The hostile one has one core, 256 MiB, 512 MiB of disk
and 256 processes, and does one thing at a time: a fork bomb, a memory bomb, filling its disk, flooding
sockets, writing 10 GB of output that the service is asked for. Each round begins with the neighbour alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Mapping

from bench.served import Client, Served, quantile, serving
from bench.table import Of, Table, at_most, options, run_as_product

LIMITS = {"cpu": 1, "memory_mb": 256, "disk_mb": 512, "pids": 256}
WARM_S = 1.0
ROUNDS = 2
_SOCKETS = (
    "import socket\nopened = []\nserver = socket.create_server(('127.0.0.1', 0), backlog=4096)\nwhile True:\n"
    "    try: opened += [socket.create_connection(server.getsockname(), 1), server.accept()[0]]\n"
    "    except OSError: opened.clear()\n"
)
_MEMORY = "held = []\nwhile True: held.append(b'x' * (1 << 20))"
ATTACKS = {
    "a fork bomb": "b() { b | b & }; while :; do b; sh -c 'sleep 100 &'; done 2>/dev/null",
    "a memory bomb": f'while :; do python3 -c "{_MEMORY}"; done 2>/dev/null',
    "a full disk": "while :; do dd if=/dev/zero of=/workspace/fill bs=1M count=400; done 2>/dev/null",
    "a socket flood": f'while :; do python3 -c "{_SOCKETS}"; done 2>/dev/null',
    "10 GB of output": "head -c 10G /dev/zero",
}
"""Shell commands that go on until they are ended."""


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--count", type=int, default=300, help="commands of the neighbour a round")
    given = parser.parse_args()
    table = Table("env_neighbours", as_json=given.json)
    with serving("--provider", "local", "--log-level", "warning") as served:
        run_as_product(lambda: attacked(table, served, given.count))
    return table.end()


async def attacked(table: Table, served: Served, count: int) -> None:
    """One row an attack, of the round in which it cost the neighbour least: other work of the machine only
    adds."""
    victim = Client(served.host, served.port)
    name = await made(victim, {})
    await probes(victim, name, count // 4)
    for what, command in ATTACKS.items():
        rounds = []
        for _ in range(ROUNDS):
            alone = await probes(victim, name, count)
            async with attacker(served, command):
                rounds.append((await probes(victim, name, count), alone))
        under, alone = min(rounds, key=lambda one: one[0] / one[1])
        table.row(
            f"p99 of exec beside {what}", 1000 * under, "ms", peer="the same without it",
            beside=1000 * alone, asked=at_most(2, Of.RATIO),
        )  # fmt: skip
    victim.close()


async def made(client: Client, spec: Mapping[str, object]) -> str:
    """The id of a sandbox that is ready."""
    body = json.dumps({"spec": spec}).encode()
    status, said = await client.raw("POST", "/v2/sandboxes?wait=60", body)
    if status >= 300:
        raise SystemExit(f"no sandbox: {status} {said[:300]!r}")
    return str(json.loads(said)["id"])


@contextlib.asynccontextmanager
async def attacker(served: Served, command: str) -> AsyncIterator[None]:
    """A hostile sandbox at its work, gone at the end."""
    client, waiting = Client(served.host, served.port), Client(served.host, served.port)
    name = await made(client, LIMITS)
    asked = {"command": command, "wait": True, "timeout_seconds": 300}
    work = asyncio.create_task(waiting.call("POST", f"/sandboxes/{name}/exec", asked))
    await asyncio.sleep(WARM_S)
    try:
        yield
    finally:
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        waiting.close()
        await client.raw("DELETE", f"/v2/sandboxes/{name}")
        client.close()


async def probes(client: Client, name: str, count: int) -> float:
    """The p99 of so many commands, one after the other, seconds."""
    times = []
    for _ in range(count):
        began = time.perf_counter()
        await client.call("POST", f"/sandboxes/{name}/exec", {"command": ["true"], "wait": True})
        times.append(time.perf_counter() - began)
    return quantile(times, 0.99)


if __name__ == "__main__":
    raise SystemExit(main())
