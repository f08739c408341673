"""What bench/env_scale.py measures in a process of its own.

    python env_scale_part.py follow KUBECONFIG PORT PODS
    python env_scale_part.py live KUBECONFIG PORT SANDBOXES AT_ONCE AGENTS

Prints a JSON line.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import TypeVar

import aiohttp
from orchard_env.kubernetes.api import ClusterApi
from orchard_env.kubernetes.config import KubernetesConfig
from orchard_env.kubernetes.informer import PodInformer
from orchard_env.kubernetes.labels import SANDBOXES
from orchard_env.kubernetes.provider import open_kubernetes

from orchard_core import ImageRef, Sandbox, SandboxSpec

T = TypeVar("T")
R = TypeVar("R")
LONG = 600.0
SPEC = SandboxSpec(
    image=ImageRef.parse("oci:busybox:1.36"), cpu=1, memory_mb=512, labels={"orchard.dev/run": "r1"}
)


class Used:
    """Wall time, CPU time and memory of this process since now."""

    def __init__(self) -> None:
        gc.collect()
        self._wall, self._cpu, self._rss = time.perf_counter(), time.process_time(), rss()

    @property
    def wall(self) -> float:
        return time.perf_counter() - self._wall

    @property
    def cpu(self) -> float:
        return time.process_time() - self._cpu

    @property
    def rss(self) -> int:
        gc.collect()
        return rss() - self._rss


def rss() -> int:
    """Bytes resident."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


async def order(session: aiohttp.ClientSession, port: int, what: str, count: int = 0) -> dict[str, int]:
    """Have the stand-in do something; what it was asked so far."""
    async with session.post(f"http://127.0.0.1:{port}/-/{what}?count={count}") as answer:
        answer.raise_for_status()
        found: dict[str, int] = await answer.json()
        return found


async def follow(kubeconfig: str, port: int, count: int) -> dict[str, float]:
    """LIST, then as many events, then a LIST anew after a tenth was replaced while nobody looked."""
    async with (
        aiohttp.ClientSession() as session,
        await ClusterApi.open(kubeconfig=kubeconfig) as api,
    ):
        used = Used()
        async with PodInformer(api, SANDBOXES) as pods:
            await pods.wait_synced(LONG)
            assert len(pods) == count
            found = {"list_s": used.wall, "list_cpu_s": used.cpu, "bytes": used.rss / count}
            await asyncio.sleep(0.5)
            used = Used()
            await order(session, port, "touch", count)
            await _until(lambda: pods.events >= count)
            found |= {"events_s": used.wall, "events_cpu_s": used.cpu}
            await order(session, port, "lapse", count // 10)
            used = Used()
            await _until(lambda: pods.lists == 2)
            assert len(pods) == count
            return found | {"relist_s": used.wall, "relist_cpu_s": used.cpu}


async def live(kubeconfig: str, port: int, count: int, at_once: int, agents: int) -> dict[str, float]:
    """So many sandboxes through the provider: created `at_once` at a time, all kept, then all closed."""
    # The pods that stand belong to a driver that never was: a reaper would rightly begin to remove them.
    config = KubernetesConfig(kubeconfig=kubeconfig, agent_port=agents, calls_per_s=100_000.0, reap=False)
    async with aiohttp.ClientSession() as session:
        provider = open_kubernetes(config)
        first = await provider.create(SPEC)
        await first.close()
        before = await order(session, port, "counts")
        used = Used()
        boxes: list[Sandbox] = []

        async def create(_: int) -> float:
            began = time.perf_counter()
            boxes.append(await provider.create(SPEC))
            return time.perf_counter() - began

        seconds = await spread(create, range(count), at_once)
        found = {"create_s": used.wall, "create_cpu_s": used.cpu, "bytes": used.rss / count}
        await spread(lambda box: box.close(), list(boxes), at_once)
        found |= {"all_s": used.wall, "all_cpu_s": used.cpu, "p50_s": statistics.median(seconds)}
        after = await order(session, port, "counts")
        await provider.close()
        asked = {what: after[what] - before.get(what, 0) for what in after}
        return found | {
            "calls": sum(asked.values()) / count,
            **{f"calls {k}": v for k, v in asked.items() if v},
        }


async def spread(work: Callable[[T], Awaitable[R]], given: Iterable[T], at_once: int) -> list[R]:
    """Do it for each, so many at a time."""
    left = iter(given)

    async def worker() -> list[R]:
        return [await work(one) for one in left]

    return [one for several in await asyncio.gather(*(worker() for _ in range(at_once))) for one in several]


async def _until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(LONG):
        while not true():
            await asyncio.sleep(0.005)


def main() -> None:
    part, kubeconfig, *numbers = sys.argv[1:]
    given = [int(number) for number in numbers]
    work = follow(kubeconfig, *given) if part == "follow" else live(kubeconfig, *given)
    print(json.dumps(asyncio.run(work)))


if __name__ == "__main__":
    main()
