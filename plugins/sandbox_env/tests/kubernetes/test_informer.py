"""The informer of a server that breaks off, forgets, says nothing, or will not list."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from orchard_env.kubernetes.api import ClusterApi
from orchard_env.kubernetes.informer import PodChange, PodInformer
from orchard_env.kubernetes.pods import PodView
from orchard_env.kubernetes.resources import PODS, Selector
from orchard_env.testing.cluster import FakeCluster, Fault

from orchard_core import SandboxUnavailable, SpecRefused

from .clusters import ENOUGH, OURS, pod, standin


@dataclass
class Scene:
    """The stand-in, a client, and an informer with small pages and little patience for silence."""

    cluster: FakeCluster
    api: ClusterApi
    pods: PodInformer

    async def create(self, *names: str) -> None:
        """Pods that run, and that the informer has heard of from the server."""
        await asyncio.gather(*(self.api.create(PODS, pod(name)) for name in names))
        for name in names:
            await self.pods.until(name, lambda one: one is not None and one.ready, ENOUGH)

    def kill(self, name: str) -> None:
        """The pod is gone, behind the server's own back."""
        self.cluster.server.store.drop("pods", ("default", name))


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    async with (
        standin(tmp_path) as (cluster, api),
        PodInformer(api, Selector.of(OURS), silent_s=1.0, page=2) as pods,
    ):
        await pods.wait_synced(ENOUGH)
        yield Scene(cluster, api, pods)


async def become(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(ENOUGH):
        while not true():
            await asyncio.sleep(0.01)


class TestKeepsUp:
    async def test_one_list_and_one_watch_tell_of_all_pods_and_of_no_others(self, scene: Scene) -> None:
        stranger = pod("stranger")
        stranger["metadata"]["labels"] = {"orchard.dev/managed-by": "somebody-else"}
        await scene.api.create(PODS, stranger)
        await scene.create("a", "b", "c")
        assert {one.name for one in scene.pods} == {"a", "b", "c"}
        assert scene.api.calls["list pods"] == 1
        assert scene.api.calls["watch pods"] == 1
        assert scene.pods.stale_s < ENOUGH

    async def test_a_list_of_many_pages_is_taken_whole(self, scene: Scene) -> None:
        await scene.create(*(f"p{number}" for number in range(7)))
        async with PodInformer(scene.api, Selector.of(OURS), page=2) as late:
            await late.wait_synced(ENOUGH)
            assert len(late) == 7

    async def test_a_dropped_watch_goes_on_where_it_was(self, scene: Scene) -> None:
        await scene.create("a", "b")
        await scene.cluster.deaf()
        scene.kill("a")
        await scene.cluster.listen()
        assert await scene.pods.until("a", lambda one: one is None, ENOUGH) is None
        assert scene.pods.get("b") is not None
        assert scene.pods.lists == 1

    async def test_a_watch_that_falls_silent_is_renewed(self, scene: Scene) -> None:
        await scene.create("a")
        scene.cluster.silence_watches()
        scene.kill("a")
        assert await scene.pods.until("a", lambda one: one is None, ENOUGH) is None
        assert scene.pods.lists == 1

    async def test_bookmarks_keep_a_quiet_watch_from_being_forgotten(self, scene: Scene) -> None:
        await scene.create("a")
        stranger = pod("stranger")
        stranger["metadata"]["labels"] = {}
        await scene.api.create(PODS, stranger)
        seen = scene.cluster.server.store.version
        await become(lambda: int(scene.pods.version) >= seen)
        await scene.cluster.deaf()
        scene.cluster.server.store.compacted = seen
        await scene.cluster.listen()
        await scene.create("b")
        assert scene.pods.lists == 1

    async def test_what_ended_while_the_server_forgot_is_purged_by_a_new_list(self, scene: Scene) -> None:
        await scene.create("a", "b", "c", "d")
        waiting = asyncio.create_task(scene.pods.until("a", lambda one: one is None, ENOUGH))
        await asyncio.sleep(0)
        await scene.cluster.deaf()
        scene.kill("a")
        scene.kill("c")
        scene.cluster.compact()
        await scene.cluster.listen()
        assert await waiting is None
        assert {one.name for one in scene.pods} == {"b", "d"}
        assert scene.pods.lists == 2

    async def test_a_list_that_fails_changes_nothing_and_is_told(self, scene: Scene) -> None:
        await scene.create("a", "b", "c")
        fault = Fault(status=500, method="GET", path="/pods", watch=False, count=1_000_000)
        scene.cluster.suffer(fault)
        await scene.cluster.deaf()
        scene.kill("a")
        scene.cluster.compact()
        await scene.cluster.listen()
        await become(lambda: "told to refuse" in str(scene.pods.last_error))
        assert {one.name for one in scene.pods} == {"a", "b", "c"}
        assert scene.pods.synced
        fault.count = 0
        await scene.pods.until("a", lambda one: one is None, ENOUGH)
        assert scene.pods.last_error is None

    async def test_a_list_that_breaks_between_two_pages_purges_nobody(self, scene: Scene) -> None:
        await scene.create("a", "b", "c", "d", "e")
        fault = Fault(status=410, path="continue=", count=3)
        scene.cluster.suffer(fault)
        lost: list[PodChange] = []
        scene.pods.subscribe(lambda change: lost.append(change) if change.after is None else None)
        await scene.cluster.deaf()
        scene.cluster.server.store.add("pods", "default", pod("f"))
        scene.cluster.compact()
        await scene.cluster.listen()
        await scene.pods.until("f", lambda one: one is not None, ENOUGH)
        await become(lambda: scene.pods.lists == 2)
        assert fault.count == 0
        assert lost == []
        assert len(scene.pods) == 6


class TestWaiting:
    async def test_a_waiter_is_asked_at_changes_of_its_own_pod_only(self, scene: Scene) -> None:
        asked: list[PodView | None] = []

        def ready(one: PodView | None) -> bool:
            asked.append(one)
            return one is not None and one.ready

        waiting = asyncio.create_task(scene.pods.until("mine", ready, ENOUGH))
        await asyncio.sleep(0)
        await scene.create("a", "b", "c")
        assert asked == [None]
        await scene.create("mine")
        assert await waiting is scene.pods.get("mine")
        assert len(asked) == 4

    async def test_what_the_question_raises_is_raised_where_it_is_waited(self, scene: Scene) -> None:
        def refuse(one: PodView | None) -> bool:
            if one is not None:
                raise SpecRefused("no such thing")
            return False

        waiting = asyncio.create_task(scene.pods.until("a", refuse, ENOUGH))
        await scene.create("a")
        with pytest.raises(SpecRefused):
            await waiting
        await scene.create("b")

    async def test_what_does_not_come_is_a_timeout(self, scene: Scene) -> None:
        with pytest.raises(TimeoutError):
            await scene.pods.until("nobody", lambda one: one is not None, 0.05)

    async def test_a_pod_just_created_is_there_at_once_and_not_after_its_end(self, scene: Scene) -> None:
        made = await scene.api.create(PODS, pod("a"))
        scene.pods.learn(made)
        assert scene.pods.get("a") is not None
        await scene.api.delete(PODS, "a", grace_s=0)
        await scene.pods.until("a", lambda one: one is None, ENOUGH)
        scene.pods.learn(made)
        assert scene.pods.get("a") is None

    async def test_news_that_is_older_than_what_is_known_is_left(self, scene: Scene) -> None:
        made = await scene.api.create(PODS, pod("a"))
        await scene.pods.until("a", lambda one: one is not None and one.ready, ENOUGH)
        scene.pods.learn(made)
        known = scene.pods.get("a")
        assert known is not None
        assert known.ready

    async def test_those_who_wait_are_told_when_it_is_closed(self, scene: Scene) -> None:
        waiting = asyncio.create_task(scene.pods.until("a", lambda one: one is not None, ENOUGH))
        await asyncio.sleep(0)
        await scene.pods.close()
        with pytest.raises(SandboxUnavailable, match="closed"):
            await waiting
        with pytest.raises(SandboxUnavailable, match="closed"):
            await scene.pods.until("a", lambda one: one is not None, ENOUGH)

    async def test_changes_are_told_in_order(self, scene: Scene) -> None:
        heard: list[tuple[bool, bool]] = []
        stop = scene.pods.subscribe(
            lambda change: heard.append((change.before is None, change.after is None))
        )
        await scene.create("a")
        scene.kill("a")
        await scene.pods.until("a", lambda one: one is None, ENOUGH)
        assert heard[0] == (True, False)
        assert heard[-1] == (False, True)
        stop()
        told = len(heard)
        await scene.create("b")
        assert len(heard) == told


async def test_a_first_list_that_fails_says_why(tmp_path: Path) -> None:
    async with standin(tmp_path) as (cluster, api):
        cluster.suffer(Fault(status=403, path="/pods", message="pods is forbidden", count=1000))
        async with PodInformer(api, Selector.of(OURS)) as pods:
            with pytest.raises(SandboxUnavailable, match="pods is forbidden"):
                await pods.wait_synced(0.3)
            assert not pods.synced
            assert pods.stale_s == float("inf")
