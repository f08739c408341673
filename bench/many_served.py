"""The orchestrator's half of `many`: the same lives by its HTTP, and 200 clients at once.

Clients are connections of this process, the service is a process of its own.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

from bench.served import Client, Served, quantile, serving
from bench.table import Of, Table, at_least, at_most, run_as_product
from orchard_core.sandbox.contract import Sandbox
from orchard_core.sandbox.local.provider import LocalProvider
from orchard_core.types.sandbox import SandboxSpec

AT_ONCE = 200
ROUNDS = 15
CALM_S = 2.0
R = TypeVar("R")


@dataclass(frozen=True)
class Rush:
    """Many clients at once, each with one command after the other."""

    times: Sequence[float]
    """Of each command, seconds."""
    total: float
    """From the first to the last, seconds."""

    @property
    def rate(self) -> float:
        return len(self.times) / self.total


def through_the_service(table: Table, count: int, commands: int, alone: float) -> None:
    """`alone` is what the provider itself took for as many, seconds."""
    with serving("--provider", "local", "--log-level", "warning") as served:
        run_as_product(lambda: whole_lives(table, served, count, commands, alone))
    with serving("--provider", "local", "--log-level", "warning") as served:
        run_as_product(lambda: rushes(table, served))


async def whole_lives(table: Table, served: Served, count: int, commands: int, alone: float) -> None:
    """Create all, use all, delete all: `AT_ONCE` connections share them."""
    names = [f"many-{number}" for number in range(count)]
    marks = [time.perf_counter()]
    created = await shared(served, names, create)
    marks.append(time.perf_counter())
    used = await shared(served, names, lambda client, name: use(client, name, commands))
    marks.append(time.perf_counter())
    deleted = await shared(served, names, delete)
    marks.append(time.perf_counter())
    table.row(
        f"{count} of them through the service", marks[-1] - marks[0], "s",
        peer="the provider alone", beside=alone, asked=at_most(30),
    )  # fmt: skip
    good = sum(map(all, zip(created, used, deleted, strict=True)))
    table.row(
        "of them without a fault", 100 * good / count, "%",
        peer="all of them", beside=100, asked=at_least(100),
    )  # fmt: skip
    steps = [after - before for before, after in pairwise(marks)]
    table.note("created in {:.1f} s, used in {:.1f} s, deleted in {:.1f} s".format(*steps))


async def shared(
    served: Served, names: Sequence[str], work: Callable[[Client, str], Awaitable[R]]
) -> list[R]:
    """The work for each, by so many connections; results in the order of the names."""
    found: dict[str, R] = {}
    left = iter(names)

    async def take() -> None:
        client = Client(served.host, served.port)
        for name in left:
            found[name] = await work(client, name)
        client.close()

    await asyncio.gather(*(take() for _ in range(AT_ONCE)))
    return [found[name] for name in names]


async def create(client: Client, name: str) -> bool:
    await client.call("POST", "/sandboxes", {"image": "host", "sandbox_id": name})
    return bool((await client.call("GET", f"/sandboxes/{name}/wait"))["status"] == "ready")


async def use(client: Client, name: str, commands: int) -> bool:
    told = [await run(client, name, ["echo", f"{name} {n}"]) for n in range(commands)]
    return told == [f"{name} {n}\n" for n in range(commands)]


async def delete(client: Client, name: str) -> bool:
    await client.call("DELETE", f"/sandboxes/{name}")
    return True


async def run(client: Client, name: str, command: Sequence[str]) -> str:
    """What it wrote."""
    answer = await client.call("POST", f"/sandboxes/{name}/exec", {"command": command, "wait": True})
    return str(answer["stdout"])


async def rushes(table: Table, served: Served) -> None:
    """`AT_ONCE` clients, each with a sandbox of its own: through the service, and straight to the agents."""
    names = [f"rush-{number}" for number in range(AT_ONCE)]
    await shared(served, names, create)
    provider = LocalProvider()
    boxes = [await provider.create(SandboxSpec()) for _ in names]
    clients = [Client(served.host, served.port) for _ in names]

    async def through(number: int) -> None:
        await run(clients[number], names[number], ["true"])

    async def straight(number: int) -> None:
        await _true(boxes[number])

    for warm_up in (through, straight):
        await rush(warm_up, 1)
    await asyncio.sleep(CALM_S)
    ours, theirs = await rush(through, ROUNDS), await rush(straight, ROUNDS)
    _tell(table, ours, theirs)
    for client in clients:
        client.close()
    await asyncio.gather(*(box.close() for box in boxes))
    await provider.close()
    await shared(served, names, delete)


async def _true(box: Sandbox) -> None:
    await box.exec(["true"])


async def rush(work: Callable[[int], Awaitable[None]], rounds: int) -> Rush:
    times: list[float] = []

    async def client(number: int) -> None:
        for _ in range(rounds):
            began = time.perf_counter()
            await work(number)
            times.append(time.perf_counter() - began)

    began = time.perf_counter()
    await asyncio.gather(*(client(number) for number in range(AT_ONCE)))
    return Rush(times, time.perf_counter() - began)


def _tell(table: Table, ours: Rush, theirs: Rush) -> None:
    table.row(
        f"commands, {AT_ONCE} clients at once", ours.rate, "1/s",
        peer="the agents without the service", beside=theirs.rate, asked=at_least(300),
    )  # fmt: skip
    table.row(
        "their p99", quantile(ours.times, 0.99) * 1e3, "ms",
        peer="their median", beside=quantile(ours.times, 0.5) * 1e3, asked=at_most(3, Of.RATIO),
    )  # fmt: skip
    straight = [quantile(theirs.times, part) * 1e3 for part in (0.5, 0.99)]
    table.note(
        "without the service p50 {:.0f} ms, p99 {:.0f} ms; load {:.1f}".format(*straight, os.getloadavg()[0])
    )
