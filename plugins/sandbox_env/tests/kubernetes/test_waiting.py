"""Waiting for pods of the stand-in, whose nodes and components say what a case has them say."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from orchard_env.kubernetes.api import ClusterApi
from orchard_env.kubernetes.informer import PodInformer
from orchard_env.kubernetes.pods import PodView
from orchard_env.kubernetes.resources import EVENTS, NODES, PODS, Manifest, Selector
from orchard_env.kubernetes.unstarted import FailurePolicy
from orchard_env.kubernetes.waiting import PodWaiter
from orchard_env.testing.cluster import FakeCluster, Fault

from orchard_core import (
    ImagePullFailed,
    NodeLost,
    SandboxCreateFailed,
    SandboxError,
    SandboxEvicted,
    SandboxExpired,
    SandboxGone,
    SandboxOutOfMemory,
    SandboxPreempted,
    SpecRefused,
    Unschedulable,
)

from .clusters import ENOUGH, OURS, pod, standin

POLICY = FailurePolicy(schedule_grace_s=0.5, no_scale_up_grace_s=0.0, start_grace_s=0.0)


@dataclass
class Scene:
    """The stand-in and one who waits."""

    cluster: FakeCluster
    api: ClusterApi
    pods: PodInformer
    waiter: PodWaiter

    async def create(self, name: str) -> PodView:
        """A pod that its waiter knows of."""
        return self.pods.learn(await self.api.create(PODS, pod(name)))

    async def up(self, name: str) -> PodView:
        await self.create(name)
        return await self.waiter.reach(name, lambda one: one.started, ENOUGH)

    def says(self, name: str, **status: object) -> None:
        """The pod's status is that from now on."""
        key = ("default", name)
        old = self.cluster.server.store.all("pods")[key]
        self.cluster.server.store.put("pods", key, {**old, "status": {**old["status"], **status}})

    async def happens(self, to: PodView, reason: str, message: str, **more: object) -> None:
        """A component tells of a pod."""
        event: Manifest = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{to.name}.{reason.lower()}"},
            "involvedObject": {"kind": "Pod", "name": to.name, "uid": to.uid},
            "reason": reason,
            "message": message,
            "type": "Warning",
            **more,
        }
        await self.api.create(EVENTS, event)

    async def node(self, name: str, **spec: object) -> None:
        await self.api.create(
            NODES, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": spec}
        )


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    async with (
        standin(tmp_path) as (cluster, api),
        PodInformer(api, Selector.of(OURS)) as pods,
        PodWaiter(api, pods, policy=POLICY) as waiter,
    ):
        await pods.wait_synced(ENOUGH)
        yield Scene(cluster, api, pods, waiter)


async def test_a_pod_that_comes_up_is_given(scene: Scene) -> None:
    assert (await scene.up("a")).ip


async def test_a_wait_that_is_over_tells_the_last_words(scene: Scene) -> None:
    await scene.create("a")
    with pytest.raises(TimeoutError, match=r"pod a did not come up within 0.2 s; it is"):
        await scene.waiter.reach("a", lambda one: False, 0.2)


async def test_a_word_of_a_component_ends_the_wait_though_the_pod_says_nothing(scene: Scene) -> None:
    box = await scene.up("a")
    scene.says("a", phase="Pending", containerStatuses=[])
    waiting = asyncio.create_task(scene.waiter.reach("a", lambda one: False, ENOUGH))
    async with asyncio.timeout(ENOUGH):
        while scene.api.calls["watch events"] < 3:
            await asyncio.sleep(0.01)
    await scene.happens(box, "FailedMount", 'MountVolume.SetUp failed for volume "v"')
    with pytest.raises(SandboxCreateFailed, match="FailedMount"):
        await waiting


def terminated(reason: str, code: int) -> Manifest:
    return {"name": "main", "restartCount": 0, "state": {"terminated": {"reason": reason, "exitCode": code}}}


def waits(reason: str, message: str) -> Manifest:
    return {"name": "main", "restartCount": 0, "state": {"waiting": {"reason": reason, "message": message}}}


REFUSED = "dial tcp 10.0.0.1:443: connect: connection refused"
FAILURES: Mapping[str, tuple[type[SandboxError], Mapping[str, object]]] = {
    "pull": (
        ImagePullFailed,
        {"phase": "Pending", "containerStatuses": [waits("ErrImagePull", REFUSED)]},
    ),
    "configuration": (
        SpecRefused,
        {"phase": "Pending", "containerStatuses": [waits("CreateContainerConfigError", "no secret")]},
    ),
    "refused by its node": (Unschedulable, {"phase": "Failed", "reason": "OutOfcpu", "message": "no room"}),
    "memory": (
        SandboxOutOfMemory,
        {"phase": "Failed", "containerStatuses": [terminated("OOMKilled", 137)]},
    ),
    "killed": (SandboxGone, {"phase": "Failed", "containerStatuses": [terminated("Error", 137)]}),
    "evicted": (SandboxEvicted, {"phase": "Failed", "reason": "Evicted", "message": "low on memory"}),
    "preempted": (SandboxPreempted, {"phase": "Failed", "reason": "Preempting", "message": "another"}),
    "node": (NodeLost, {"phase": "Failed", "reason": "NodeLost", "message": "it is silent"}),
    "deadline": (SandboxExpired, {"phase": "Failed", "reason": "DeadlineExceeded", "message": "over"}),
}
"""What a cluster tells of a pod, at once and for good."""


@pytest.mark.parametrize("which", FAILURES)
async def test_a_failure_is_told_by_the_very_event_that_brings_it(scene: Scene, which: str) -> None:
    """Once the watch has brought it, nothing else is waited for: no timer, no look, no other event. Of a lost
    node the node itself is asked whether it was taken back."""
    kind, status = FAILURES[which]
    await scene.up("a")
    waiting = asyncio.create_task(scene.waiter.reach("a", lambda one: False, ENOUGH))
    brought = asyncio.Event()
    scene.pods.subscribe(lambda _: brought.set())
    scene.says("a", **status)
    await asyncio.wait_for(brought.wait(), ENOUGH)
    for _ in range(10):  # turns of the loop, which waits for nothing meanwhile
        await asyncio.sleep(0)
    assert waiting.done() or scene.api.calls["get nodes"] == 1
    with pytest.raises(SandboxError) as told:
        await waiting
    assert type(told.value) is kind


async def test_a_grace_that_runs_out_ends_the_wait_though_nothing_changes(scene: Scene) -> None:
    await scene.up("a")
    found = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no room"}
    key = ("default", "a")
    old = scene.cluster.server.store.all("pods")[key]
    spec = {name: value for name, value in old["spec"].items() if name != "nodeName"}
    scene.cluster.server.store.put(
        "pods", key, {**old, "spec": spec, "status": {"phase": "Pending", "conditions": [found]}}
    )
    with pytest.raises(Unschedulable, match="no room"):
        await scene.waiter.reach("a", lambda one: False, ENOUGH)


async def test_why_a_pod_was_deleted_is_asked_of_the_events(scene: Scene) -> None:
    box = await scene.up("a")
    await scene.happens(box, "Preempted", "Preempted by other/pod", type="Normal")
    await scene.api.delete(PODS, "a")
    with pytest.raises(SandboxPreempted, match="Preempted by other/pod"):
        await scene.waiter.reach("a", lambda one: False, ENOUGH)


async def test_a_pod_that_vanished_without_a_word_is_gone(scene: Scene) -> None:
    await scene.up("a")
    await scene.api.delete(PODS, "a", grace_s=0)
    with pytest.raises(SandboxGone, match="deleted from outside"):
        await scene.waiter.reach("a", lambda one: False, ENOUGH)


async def test_a_spot_node_says_itself_that_it_was_taken_back(scene: Scene) -> None:
    spot, plain = await scene.up("a"), await scene.up("b")
    await scene.node(spot.node, taints=[{"key": "cloud.google.com/impending-node-termination"}])
    await scene.node(plain.node)
    for name in ("a", "b"):
        scene.says(name, phase="Failed", reason="Evicted", message="The node was low on resource: memory.")
    with pytest.raises(SandboxPreempted, match="impending-node-termination"):
        await scene.waiter.reach("a", lambda one: False, ENOUGH)
    with pytest.raises(SandboxEvicted, match="low on resource"):
        await scene.waiter.reach("b", lambda one: False, ENOUGH)


async def test_without_rights_on_nodes_and_events_failures_are_told_all_the_same(scene: Scene) -> None:
    await scene.up("a")
    for path in ("/nodes", "/events"):
        scene.cluster.suffer(Fault(status=403, path=path, message="forbidden", count=1000))
    scene.says("a", phase="Failed", reason="NodeLost", message="Node is unresponsive")
    with pytest.raises(NodeLost, match="unresponsive"):
        await scene.waiter.reach("a", lambda one: False, ENOUGH)
