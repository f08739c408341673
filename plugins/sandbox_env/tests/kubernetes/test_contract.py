"""What any API server does, asked of a real one and of the stand-in alike."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest
from orchard_env.kubernetes.api import ClusterApi
from orchard_env.kubernetes.faults import ObjectChanged, ObjectExists, ObjectMissing
from orchard_env.kubernetes.informer import PodInformer
from orchard_env.kubernetes.resources import CONFIG_MAPS, LEASES, PODS, QUOTAS, Manifest, Selector

from orchard_core import QuotaExceeded, SpecRefused

from .clusters import ENOUGH, OURS, pod, real_cluster, standin


@pytest.fixture(params=["standin", pytest.param("real", marks=pytest.mark.cluster)])
async def api(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[ClusterApi]:
    if request.param == "real":
        async with real_cluster() as client:
            yield client
    else:
        async with standin(tmp_path) as (_, client):
            yield client


def note(name: str, **labels: str) -> Manifest:
    """An object in which nothing runs."""
    about = {"name": name, "labels": labels}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": about, "data": {"said": "yes"}}


class TestObjects:
    async def test_what_is_created_can_be_had_and_has_an_identity(self, api: ClusterApi) -> None:
        made = await api.create(CONFIG_MAPS, note("a"))
        found = await api.get(CONFIG_MAPS, "a")
        assert found is not None
        assert found["metadata"]["uid"] == made["metadata"]["uid"]
        assert found["data"] == {"said": "yes"}

    async def test_a_name_is_given_once(self, api: ClusterApi) -> None:
        await api.create(CONFIG_MAPS, note("a"))
        with pytest.raises(ObjectExists, match="already exists"):
            await api.create(CONFIG_MAPS, note("a"))

    async def test_a_dry_run_leaves_nothing_behind(self, api: ClusterApi) -> None:
        await api.create(CONFIG_MAPS, note("a"), dry_run=True)
        assert await api.get(CONFIG_MAPS, "a") is None

    async def test_a_name_that_cannot_be_is_refused_in_the_servers_words(self, api: ClusterApi) -> None:
        with pytest.raises(SpecRefused, match="lowercase RFC 1123"):
            await api.create(CONFIG_MAPS, note("Not_A_Name"))

    async def test_a_name_that_would_be_another_path_is_nobodys(self, api: ClusterApi) -> None:
        await api.create(CONFIG_MAPS, note("a"))
        for name in ("", ".", "..", "a/b", "a?x=", "a#", "a\0", "a\n", "%61", "../configmaps/a"):
            assert await api.get(CONFIG_MAPS, name) is None
            assert not await api.delete(CONFIG_MAPS, name)
            with pytest.raises(ObjectMissing, match="can be named"):
                await api.patch(CONFIG_MAPS, name, {"data": {"said": "no"}})
        found = await api.get(CONFIG_MAPS, "a")
        assert found is not None
        assert found["data"] == {"said": "yes"}

    async def test_what_is_missing_is_none_and_nothing_to_delete(self, api: ClusterApi) -> None:
        assert await api.get(CONFIG_MAPS, "nobody") is None
        assert not await api.delete(CONFIG_MAPS, "nobody")
        with pytest.raises(ObjectMissing):
            await api.patch(CONFIG_MAPS, "nobody", {"data": {"said": "no"}})

    async def test_a_merge_patch_changes_what_it_names_and_drops_what_is_null(self, api: ClusterApi) -> None:
        await api.create(CONFIG_MAPS, note("a", kept="1", dropped="1"))
        patched = await api.patch(CONFIG_MAPS, "a", {"metadata": {"labels": {"dropped": None, "new": "2"}}})
        assert patched["metadata"]["labels"] == {"kept": "1", "new": "2"}

    async def test_of_two_changes_upon_one_version_one_wins(self, api: ClusterApi) -> None:
        made = await api.create(CONFIG_MAPS, note("a"))
        version = {"resourceVersion": made["metadata"]["resourceVersion"]}
        outcomes = await asyncio.gather(
            *(api.patch(CONFIG_MAPS, "a", {"metadata": version, "data": {"by": who}}) for who in "xyz"),
            return_exceptions=True,
        )
        assert [type(one) for one in outcomes if isinstance(one, BaseException)] == [ObjectChanged] * 2

    async def test_a_replacement_of_an_old_version_is_refused(self, api: ClusterApi) -> None:
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "leader"}}
        old = await api.create(LEASES, {**lease, "spec": {"holderIdentity": "x"}})
        await api.replace(LEASES, "leader", {**old, "spec": {"holderIdentity": "y"}})
        with pytest.raises(ObjectChanged):
            await api.replace(LEASES, "leader", {**old, "spec": {"holderIdentity": "z"}})

    async def test_an_object_is_deleted_only_if_it_is_the_one_meant(self, api: ClusterApi) -> None:
        made = await api.create(CONFIG_MAPS, note("a"))
        with pytest.raises(ObjectChanged):
            await api.delete(CONFIG_MAPS, "a", uid="11111111-2222-3333-4444-555555555555")
        assert await api.delete(CONFIG_MAPS, "a", uid=made["metadata"]["uid"])
        assert await api.get(CONFIG_MAPS, "a") is None

    async def test_a_list_has_all_pages_and_only_what_is_selected(self, api: ClusterApi) -> None:
        await asyncio.gather(*(api.create(CONFIG_MAPS, note(f"n{i}", mine="yes")) for i in range(7)))
        await api.create(CONFIG_MAPS, note("stranger", mine="no"))
        sizes, names = [], set()
        async for page in api.pages(CONFIG_MAPS, Selector.of({"mine": "yes"}), size=3):
            sizes.append(len(page.items))
            names |= {one["metadata"]["name"] for one in page.items}
        assert sizes == [3, 3, 1]
        assert names == {f"n{i}" for i in range(7)}
        assert len(await api.list(CONFIG_MAPS, Selector(fields="metadata.name=stranger"))) == 1

    async def test_a_selection_is_deleted_by_one_call(self, api: ClusterApi) -> None:
        await asyncio.gather(*(api.create(CONFIG_MAPS, note(f"n{i}", mine="yes")) for i in range(3)))
        await api.create(CONFIG_MAPS, note("stranger", mine="no"))
        await api.delete_all(CONFIG_MAPS, Selector.of({"mine": "yes"}))
        assert await api.list(CONFIG_MAPS, Selector.of({"mine": "yes"})) == []
        assert await api.get(CONFIG_MAPS, "stranger") is not None


class TestWatch:
    async def test_nothing_between_a_list_and_its_watch_is_lost(self, api: ClusterApi) -> None:
        chosen = Selector.of({"mine": "yes"})
        (page,) = [page async for page in api.pages(CONFIG_MAPS, chosen)]
        await api.create(CONFIG_MAPS, note("a", mine="yes"))
        await api.patch(CONFIG_MAPS, "a", {"data": {"said": "no"}})
        await api.create(CONFIG_MAPS, note("stranger"))
        await api.delete(CONFIG_MAPS, "a")
        told = []
        async with (
            asyncio.timeout(ENOUGH),
            aclosing(api.watch(CONFIG_MAPS, chosen, resource_version=page.resource_version)) as events,
        ):
            async for event in events:
                if event.type not in {"OPENED", "BOOKMARK"}:
                    told.append((event.type, event.object["metadata"]["name"]))
                if len(told) == 3:
                    break
        assert told == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]

    async def test_what_leaves_the_selection_is_told_of_as_deleted(self, api: ClusterApi) -> None:
        made = await api.create(CONFIG_MAPS, note("a", mine="yes"))
        await api.patch(CONFIG_MAPS, "a", {"metadata": {"labels": {"mine": "no"}}})
        version = made["metadata"]["resourceVersion"]
        async with (
            asyncio.timeout(ENOUGH),
            aclosing(
                api.watch(CONFIG_MAPS, Selector.of({"mine": "yes"}), resource_version=version)
            ) as events,
        ):
            told = [(await anext(events)).type for _ in range(2)]
        assert told == ["OPENED", "DELETED"]


class TestPods:
    async def test_a_pod_comes_up_with_an_address_and_goes_when_it_is_deleted(self, api: ClusterApi) -> None:
        async with PodInformer(api, Selector.of(OURS)) as pods:
            pods.learn(await api.create(PODS, pod("a")))
            up = await pods.until("a", lambda one: one is not None and one.ready, ENOUGH)
            assert up is not None
            assert up.started
            assert up.ip
            assert up.node
            assert abs(up.created - api.now()) < ENOUGH
            assert await api.delete(PODS, "a", uid=up.uid, grace_s=0)
            assert await pods.until("a", lambda one: one is None, ENOUGH) is None

    async def test_an_eviction_deletes_the_pod(self, api: ClusterApi) -> None:
        async with PodInformer(api, Selector.of(OURS)) as pods:
            pods.learn(await api.create(PODS, pod("a")))
            await pods.until("a", lambda one: one is not None and one.ready, ENOUGH)
            await api.evict("a")
            going = await pods.until("a", lambda one: one is None or one.deleting is not None, ENOUGH)
            assert going is None or going.deleting is not None
        with pytest.raises(ObjectMissing):
            await api.evict("nobody")

    async def test_a_quota_refuses_in_the_clusters_words(self, api: ClusterApi) -> None:
        quota = {"metadata": {"name": "few"}, "spec": {"hard": {"pods": "0"}}}
        await api.create(QUOTAS, {"apiVersion": "v1", "kind": "ResourceQuota", **quota})
        with pytest.raises(QuotaExceeded, match="exceeded quota: few"):
            await self._refused(api)

    async def _refused(self, api: ClusterApi) -> None:
        """A quota holds a moment after it is made."""
        async with asyncio.timeout(ENOUGH):
            for number in range(10_000):
                await api.create(PODS, pod(f"p{number}"))
