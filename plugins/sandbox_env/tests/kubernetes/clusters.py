"""API servers for the cases here: the stand-in, and a real one where KUBECONFIG leads to it."""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from orchard_env.kubernetes.api import ApiLimits, ClusterApi
from orchard_env.kubernetes.resources import NAMESPACES, Manifest, Resource
from orchard_env.testing.cluster import FakeCluster, Settings

from orchard_core import OrchardError

OURS = {"orchard.dev/managed-by": "case"}
QUICK = Settings(schedule_s=0.01, start_s=0.02, stop_s=0.01, bookmark_s=0.2)
SERVICE_ACCOUNTS = Resource(group="/api/v1", plural="serviceaccounts")
ENOUGH = 30.0
"""Seconds; nothing here takes nearly as long."""
IMPATIENT = ApiLimits(per_s=10_000, burst=10_000, call_s=1.0, patience_s=3.0)


def pod(name: str, *command: str, image: str = "busybox:1.36", **spec: object) -> Manifest:
    """A pod that sleeps, or runs `command`."""
    container = {
        "name": "main",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": list(command or ("sleep", "3600")),
    }
    whole: Manifest = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 1,
        "containers": [container],
    }
    about = {"name": name, "labels": dict(OURS)}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": about, "spec": {**whole, **spec}}


@asynccontextmanager
async def standin(
    folder: Path, settings: Settings = QUICK, limits: ApiLimits = IMPATIENT
) -> AsyncIterator[tuple[FakeCluster, ClusterApi]]:
    """The stand-in and a client of it."""
    async with FakeCluster(settings) as cluster:
        kubeconfig = cluster.write_kubeconfig(folder / "kubeconfig")
        async with await ClusterApi.open(kubeconfig=str(kubeconfig), limits=limits) as api:
            yield cluster, api


@asynccontextmanager
async def real_cluster(kubeconfig: str | None = None) -> AsyncIterator[ClusterApi]:
    """A client of a cluster, KUBECONFIG's or another, in a namespace that is deleted in the end."""
    if not kubeconfig and not os.environ.get("KUBECONFIG"):
        pytest.skip("no cluster: start one (kind create cluster) and set KUBECONFIG")
    try:
        api = await ClusterApi.open(kubeconfig=kubeconfig)
    except OrchardError as error:
        pytest.skip(f"KUBECONFIG leads to no cluster that answers: {error}")
    async with api:
        api.namespace = f"orchard-test-{secrets.token_hex(4)}"
        name = {"name": api.namespace}
        await api.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": name})
        try:
            # No pod can be made before its namespace has its service account.
            while await api.get(SERVICE_ACCOUNTS, "default") is None:
                await asyncio.sleep(0.05)
            yield api
        finally:
            await api.delete(NAMESPACES, api.namespace)
