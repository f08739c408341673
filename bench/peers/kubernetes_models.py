"""The official client's own way to follow pods: LIST by pages into models, then its Watch.

    python kubernetes_models.py KUBECONFIG PORT PODS

Prints a JSON line: what bench/env_scale.py's own part prints, for as many pods.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import aiohttp
from kubernetes.aio import client, config, watch

from bench.env_scale_part import Used, order

LABELS = "orchard.dev/managed-by=orchard-env"


async def main(kubeconfig: str, port: int, count: int) -> dict[str, float]:
    await config.load_kube_config(kubeconfig)  # type: ignore[no-untyped-call]
    async with client.ApiClient() as api, aiohttp.ClientSession() as session:
        pods = client.CoreV1Api(api)
        used = Used()
        known, version = await listed(pods)
        found = {"list_s": used.wall, "list_cpu_s": used.cpu, "bytes": used.rss / max(1, len(known))}
        used = Used()
        follower = asyncio.create_task(follow(pods, known, version, count))
        await asyncio.sleep(0.5)
        await order(session, port, "touch", count)
        await follower
        found |= {"events_s": used.wall - 0.5, "events_cpu_s": used.cpu}
        await order(session, port, "lapse", count // 10)
        used = Used()
        known, _ = await listed(pods)
        assert len(known) == count
        return found | {"relist_s": used.wall, "relist_cpu_s": used.cpu}


async def listed(pods: Any) -> tuple[dict[str, Any], str]:
    known: dict[str, Any] = {}
    token = None
    while True:
        page = await pods.list_namespaced_pod("default", label_selector=LABELS, limit=500, _continue=token)
        known |= {pod.metadata.name: pod for pod in page.items}
        token = page.metadata._continue
        if not token:
            return known, page.metadata.resource_version


async def follow(pods: Any, known: dict[str, Any], version: str, events: int) -> None:
    async with watch.Watch() as stream:  # type: ignore[no-untyped-call]
        told = stream.stream(
            pods.list_namespaced_pod, "default", label_selector=LABELS, resource_version=version
        )
        async for event in told:
            known[event["object"].metadata.name] = event["object"]
            events -= 1
            if not events:
                return


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))))
