"""Failures that a real cluster makes: each ends the wait with the cluster's own reason."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping

import pytest
import pytest_asyncio
from orchard_env.kubernetes.api import ClusterApi
from orchard_env.kubernetes.informer import PodInformer
from orchard_env.kubernetes.resources import PODS, Manifest, Selector
from orchard_env.kubernetes.unstarted import FailurePolicy
from orchard_env.kubernetes.waiting import PodWaiter

from orchard_core import (
    ImagePullFailed,
    SandboxCreateFailed,
    SandboxError,
    SandboxExpired,
    SandboxGone,
    SandboxOutOfMemory,
    SpecRefused,
    Unschedulable,
)

from .clusters import OURS, pod, real_cluster

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]

LONG = 120.0
"""Seconds; a machine under load takes tens."""
POLICY = FailurePolicy(schedule_grace_s=1.0)

Errors = Mapping[str, SandboxError]


def container(**changes: object) -> Manifest:
    base = {"name": "main", "image": "busybox:1.36", "command": ["sleep", "3600"]}
    return {**base, "imagePullPolicy": "IfNotPresent", **changes}


def pods_that_fail() -> list[Manifest]:
    """Named by what is wrong with them."""
    secret = {"name": "data", "secret": {"secretName": "nothing"}}
    shown = container(volumeMounts=[{"name": "data", "mountPath": "/data"}])
    eater = ["sh", "-c", "sleep 1; x=aaaaaaaaaaaaaaaa; while true; do x=$x$x; done"]
    return [
        pod("wrong-image", image="Not A Name!!"),
        pod("no-image", image="registry.invalid/nobody/nothing:1"),
        pod("no-config-map", containers=[container(envFrom=[{"configMapRef": {"name": "nowhere"}}])]),
        pod("no-secret", containers=[container(envFrom=[{"secretRef": {"name": "nothing"}}])]),
        pod("no-command", "/no/such/program"),
        pod("no-node", containers=[container(resources={"requests": {"cpu": "4000"}})]),
        pod("no-volume", volumes=[secret], containers=[shown]),
        pod("init-fails", initContainers=[container(name="inject", command=["sh", "-c", "exit 7"])]),
        pod("memory", containers=[container(command=eater, resources={"limits": {"memory": "32Mi"}})]),
        pod("deadline", activeDeadlineSeconds=2),
        pod("ends", "sh", "-c", "sleep 1; exit 3"),
        pod("put-out"),
        pod("deleted"),
    ]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def errors() -> AsyncIterator[Errors]:
    """What came of each of them: all are started together."""
    async with (
        real_cluster() as api,
        PodInformer(api, Selector.of(OURS)) as pods,
        PodWaiter(api, pods, policy=POLICY) as waiter,
    ):
        await pods.wait_synced(LONG)
        every = pods_that_fail()
        found = await asyncio.gather(*(_fails(api, pods, waiter, manifest) for manifest in every))
        yield dict(zip((one["metadata"]["name"] for one in every), found, strict=True))


async def _fails(api: ClusterApi, pods: PodInformer, waiter: PodWaiter, manifest: Manifest) -> SandboxError:
    pods.learn(await api.create(PODS, manifest))
    name = manifest["metadata"]["name"]
    if name in {"put-out", "deleted"}:
        await waiter.reach(name, lambda one: one.started, LONG)
        await (api.evict(name) if name == "put-out" else api.delete(PODS, name))
    with pytest.raises(SandboxError) as told:
        await waiter.reach(name, lambda one: False, LONG)
    return told.value


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("wrong-image", ImagePullFailed, "InvalidImageName"),
        ("no-image", ImagePullFailed, "registry.invalid/nobody/nothing:1"),
        ("no-config-map", SpecRefused, 'configmap "nowhere" not found'),
        ("no-secret", SpecRefused, 'secret "nothing" not found'),
        ("no-command", SpecRefused, "/no/such/program"),
        ("no-node", Unschedulable, "Insufficient cpu"),
        ("no-volume", SpecRefused, 'secret "nothing" not found'),
        ("init-fails", SandboxCreateFailed, "init container inject ended with 7"),
    ],
)
async def test_a_pod_that_never_ran_says_why(
    errors: Errors, name: str, kind: type[SandboxError], words: str
) -> None:
    assert type(errors[name]) is kind
    assert words in errors[name].message
    assert errors[name].hint


@pytest.mark.parametrize(
    ("name", "kind", "words", "by"),
    [
        ("memory", SandboxOutOfMemory, "OOMKilled", "agent"),
        ("deadline", SandboxExpired, "deadline", ""),
        ("ends", SandboxGone, "ended with 3", ""),
        ("deleted", SandboxGone, "deleted from outside", "infrastructure"),
        ("put-out", SandboxGone, "deleted from outside", "infrastructure"),
    ],
)
async def test_a_pod_that_ran_says_what_ended_it_and_whose_doing_that_is(
    errors: Errors, name: str, kind: type[SandboxGone], words: str, by: str
) -> None:
    error = errors[name]
    assert isinstance(error, kind)
    assert error.by == by
    assert words in error.message
