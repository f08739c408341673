"""The provider `kubernetes` on the cluster that KUBECONFIG names, beside pods without us.

    python bench/env_cluster.py [--rounds 15] [--pods 100] [--execs 200] [--json]

Cold: from the request until a first command's answer came over the pod's network, for the bare pod (its
container answers each connection with what `echo` writes), for the same with our volumes and an init
container that does nothing, and for a sandbox. All three are heard of by the same kind of informer and asked
at the same pace; they take turns, each alone in a namespace of the bench's own. Commands: `true`, by the
local agent, by a pod's agent, by the service, and by the official client's own exec stream, in turns too. The
nodes need the images busybox:1.36 and orchard/injector of this version.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from orchard_env.kubernetes.api import ClusterApi
from orchard_env.kubernetes.config import KubernetesConfig
from orchard_env.kubernetes.provider import KubernetesProvider, open_kubernetes
from orchard_env.kubernetes.warm.config import PoolConfig

from bench.agent import TRUE, running_agent
from bench.env_cluster_pods import IMAGE, KINDS, PlainPods, fresh_namespace
from bench.served import Client, Served, quantile, serving
from bench.table import Of, Table, at_least, at_most, options, run_as_product
from orchard_core.types.sandbox import ImageRef, SandboxSpec

SPEC = SandboxSpec(image=ImageRef(kind="oci", value=IMAGE), cpu=0.5, memory_mb=64)
SMALL = SandboxSpec(image=ImageRef(kind="oci", value=IMAGE), cpu=0.01, memory_mb=32)
READY_S = 180.0
POOL = 3

Work = Callable[[], Awaitable[object]]


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--rounds", type=int, default=15, help="of cold pods, and of claims")
    parser.add_argument("--pods", type=int, default=100, help="that live at once")
    parser.add_argument("--execs", type=int, default=200, help="commands by each way")
    given = parser.parse_args()
    table = Table("env_cluster", as_json=given.json)
    if not os.environ.get("KUBECONFIG"):
        table.note("left out: KUBECONFIG names no cluster")
        return table.end()
    run_as_product(lambda: measured(table, given.rounds, given.pods, given.execs))
    return table.end()


async def measured(table: Table, rounds: int, pods: int, execs: int) -> None:
    async with await ClusterApi.open() as api, fresh_namespace(api):
        await cold(table, api, rounds)
        await commands(table, api.namespace, execs)
        await warm(table, api.namespace, rounds)
        await crowd(table, api.namespace, pods)
    table.note(f"load {os.getloadavg()[0]:.1f} at the end")


def provider_in(namespace: str, **more: Any) -> KubernetesProvider:
    return open_kubernetes(KubernetesConfig(namespace=namespace, create_timeout_s=READY_S, **more))


async def timed(work: Awaitable[object]) -> float:
    began = time.perf_counter()
    await work
    return time.perf_counter() - began


async def cold(table: Table, api: ClusterApi, rounds: int) -> None:
    """Create to first answer."""
    provider = provider_in(api.namespace)
    await sandbox(provider, SPEC)  # makes the seed and opens what is opened once
    times: dict[str, list[float]] = {kind: [] for kind in (*KINDS, "sandbox")}
    async with PlainPods(api, SPEC, provider.config) as plain:
        for number in range(rounds):
            for kind in turned((*KINDS, "sandbox"), number):
                await plain.settled()
                made = plain.answer(kind, number) if kind in KINDS else sandbox(provider, SPEC)
                times[kind].append(await made)
    await provider.close()
    p50 = {kind: statistics.median(each) * 1e3 for kind, each in times.items()}
    table.row(
        "create to first command, p50", p50["sandbox"], "ms",
        peer="the same pod, an empty init", beside=p50["empty init"], asked=at_most(150, Of.OVER),
    )  # fmt: skip
    table.row(
        "the same", p50["sandbox"], "ms", peer="the bare pod", beside=p50["bare"],
    )  # fmt: skip
    spread = ", ".join(f"{kind} {min(each):.2f} to {max(each):.2f} s" for kind, each in times.items())
    table.note(spread)


def turned(kinds: Sequence[str], number: int) -> list[str]:
    """Each begins a round as often as the others."""
    first = number % len(kinds)
    return [*kinds[first:], *kinds[:first]]


async def sandbox(provider: KubernetesProvider, spec: SandboxSpec) -> float:
    """Seconds from the request to the answer of a first command; it is deleted after."""
    began = time.perf_counter()
    box = await provider.create(spec)
    try:
        assert (await box.exec(["echo", "ok"])).stdout == b"ok\n"
        return time.perf_counter() - began
    finally:
        await box.close()


async def commands(table: Table, namespace: str, count: int) -> None:
    """`true` by each way."""
    provider = provider_in(namespace)
    box = await provider.create(SPEC)
    service = ("--provider-option", f"namespace={namespace}", "--log-level", "warning")
    with tempfile.TemporaryDirectory() as place, serving("--provider", "kubernetes", *service) as served:
        async with running_agent(Path(place)) as (agent, _, _), exec_stream(namespace, box.id) as stream:
            client = Client(served.host, served.port)
            through = await _served(served, client)
            ways: dict[str, Work] = {
                "local": lambda: agent.exec([TRUE]),
                "direct": lambda: box.exec(["true"]),
                "service": lambda: through("POST", {"command": ["true"], "wait": True}),
            }
            p50 = await by_turns(ways, count)
            theirs = await by_turns({"stream": stream}, max(1, count // 10))
            await through("DELETE", None)
            client.close()
    await box.close()
    await provider.close()
    table.row("a command, straight to the pod, p50", p50["direct"], "ms",
              peer="by the bare local agent", beside=p50["local"], asked=at_most(2, Of.RATIO))  # fmt: skip
    table.row("a command, by the service, p50", p50["service"], "ms",
              peer="straight to the pod", beside=p50["direct"], asked=at_most(2, Of.RATIO))  # fmt: skip
    table.row("the same", p50["service"], "ms",
              peer="Kubernetes' own exec stream", beside=theirs["stream"])  # fmt: skip


async def _served(served: Served, client: Client) -> Callable[[str, object], Awaitable[Any]]:
    """Calls about one sandbox of the service."""
    body = {"image": IMAGE, "cpu": SPEC.cpu, "memory": f"{SPEC.memory_mb}Mi", "sandbox_id": "served"}
    await client.call("POST", "/sandboxes", body)
    await client.call("GET", f"/sandboxes/served/wait?timeout={READY_S}")

    async def call(method: str, body: object) -> Any:
        path = "/sandboxes/served" + ("/exec" if method == "POST" else "")
        return await client.call(method, path, body)

    return call


async def by_turns(ways: Mapping[str, Work], count: int) -> dict[str, float]:
    """The median of each, milliseconds."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for work in ways.values():
        await work()
    for _ in range(count):
        for name, work in ways.items():
            times[name].append(await timed(work()))
    return {name: statistics.median(each) * 1e3 for name, each in times.items()}


@asynccontextmanager
async def exec_stream(namespace: str, pod: str) -> AsyncIterator[Work]:
    """`true` by the official client, which opens a web socket through the API server and the kubelet."""
    from kubernetes.aio import client, config, stream

    untyped: Any = (config.load_kube_config, stream.WsApiClient)
    load, connect = untyped
    await load()
    api = connect()
    core: Any = client.CoreV1Api(api)
    try:
        yield lambda: core.connect_get_namespaced_pod_exec(
            pod, namespace, command=["true"], container="sandbox", stdout=True, stderr=True
        )
    finally:
        await api.close()


async def warm(table: Table, namespace: str, rounds: int) -> None:
    """A claim of a pod that waits, until a first command's answer."""
    pool = PoolConfig(name="bench", image=IMAGE, cpu=SPEC.cpu, memory_mb=SPEC.memory_mb, target=POOL)
    provider = provider_in(namespace, pools=(pool,), fill_pools=True)
    await sandbox(provider, SMALL)  # connects
    times = []
    try:
        for _ in range(rounds):
            async with asyncio.timeout(READY_S):
                while not sum(one.ready for one in provider.pools()):
                    await asyncio.sleep(0.05)
            times.append(await sandbox(provider, SPEC))
        hits = sum(one.hits for one in provider.pools())
    finally:
        await provider.close()
    table.row("warm claim to first command, p50", statistics.median(times) * 1e3, "ms",
              peer="claims that hit", beside=hits, asked=at_most(60))  # fmt: skip
    table.note(f"warm: {min(times) * 1e3:.0f} to {quantile(times, 1) * 1e3:.0f} ms, {hits} hits of {rounds}")


async def crowd(table: Table, namespace: str, count: int) -> None:
    """Create, use and delete many at once."""
    provider = provider_in(namespace)
    began = time.perf_counter()
    ended = await asyncio.gather(*(sandbox(provider, SMALL) for _ in range(count)), return_exceptions=True)
    seconds = time.perf_counter() - began
    await provider.close()
    faults = [each for each in ended if isinstance(each, BaseException)]
    good = [each for each in ended if isinstance(each, float)]
    table.row(f"{count} pods through their life", 100 * len(good) / count, "%",
              peer="all of them", beside=100, asked=at_least(100))  # fmt: skip
    if good:
        soon, late = statistics.median(good), max(good)
        table.note(f"in {seconds:.1f} s; first command after {soon:.1f} s, at most {late:.1f} s")
    for fault in faults[:3]:
        table.note(f"{type(fault).__name__}: {fault}"[:200])


if __name__ == "__main__":
    sys.exit(main())
