"""What drivers share and what they do while the server fails; against the stand-in for one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from orchard_env.kubernetes import labels
from orchard_env.kubernetes.api import ClusterApi
from orchard_env.kubernetes.config import KubernetesConfig
from orchard_env.kubernetes.network import ensure_policy
from orchard_env.kubernetes.places import PodPlaces
from orchard_env.kubernetes.resources import NETWORK_POLICIES, PODS, SECRETS
from orchard_env.kubernetes.tokens import derive_token, ensure_seed
from orchard_env.testing.cluster import FakeCluster
from orchard_env.testing.cluster.settings import Fault

from orchard_core import (
    ConfigError,
    ImageRef,
    SandboxExists,
    SandboxGone,
    SandboxSpec,
    SandboxUnavailable,
)

from .clusters import ENOUGH, standin

SPEC = SandboxSpec(image=ImageRef(kind="oci", value="busybox:1.36"))


@asynccontextmanager
async def places(folder: Path, **options: Any) -> AsyncIterator[PodPlaces]:
    config = KubernetesConfig(kubeconfig=str(folder / "kubeconfig"), reap=False, **options)
    opened = PodPlaces(config)
    try:
        yield opened
    finally:
        await opened.close()


@asynccontextmanager
async def scene(folder: Path) -> AsyncIterator[tuple[FakeCluster, ClusterApi]]:
    async with standin(folder) as (cluster, api):
        yield cluster, api


async def test_a_failed_list_is_no_empty_one(tmp_path: Path) -> None:
    async with scene(tmp_path) as (cluster, _), places(tmp_path) as here:
        place = await here.place("box", SPEC)
        assert [one.id for one in await here.standing()] == ["box"]
        cluster.suffer(Fault(method="GET", path="/pods", watch=False, status=403))
        with pytest.raises(SandboxUnavailable):
            await here.standing()
        await place.destroy()


async def test_what_could_not_be_deleted_is_deleted_later(tmp_path: Path) -> None:
    async with scene(tmp_path) as (cluster, api):
        async with places(tmp_path) as here:
            place = await here.place("box", SPEC)
            cluster.suffer(Fault(method="DELETE", path="/pods/box", status=403))
            await place.destroy()
            assert await api.get(PODS, "box") is not None
        async with asyncio.timeout(ENOUGH):
            while (found := await api.get(PODS, "box")) and not found["metadata"].get("deletionTimestamp"):
                await asyncio.sleep(0.05)


async def test_a_name_is_one_sandboxs_whoever_made_it(tmp_path: Path) -> None:
    async with scene(tmp_path), places(tmp_path) as one, places(tmp_path) as other:
        place = await one.place("box", SPEC)
        with pytest.raises(SandboxExists):
            await other.place("box", SPEC)
        await place.destroy()
        again = await other.place("box", SPEC)
        await again.destroy()


async def test_destroying_touches_no_other_pod_of_the_name(tmp_path: Path) -> None:
    async with scene(tmp_path) as (_, api), places(tmp_path) as one, places(tmp_path) as other:
        first = await one.place("box", SPEC)
        await api.delete(PODS, "box", grace_s=0)
        while await api.get(PODS, "box") is not None:
            await asyncio.sleep(0.01)
        second = await other.place("box", SPEC)
        await first.destroy()
        found = await api.get(PODS, "box")
        assert found is not None
        assert "deletionTimestamp" not in found["metadata"]
        await second.destroy()


async def test_only_what_is_ours_can_be_found(tmp_path: Path) -> None:
    async with scene(tmp_path) as (_, api), places(tmp_path) as here:
        container = {"name": "sandbox", "image": "x"}
        for name, given in (
            ("plain", {}),
            ("half", {labels.MANAGED_BY: labels.MANAGER, labels.SANDBOX: "half"}),
            ("misnamed", {labels.MANAGED_BY: labels.MANAGER, labels.SANDBOX: "other"}),
        ):
            about = {"name": name, "labels": given}
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": about, "spec": {"containers": [container]}}
            await api.create(PODS, pod)
            with pytest.raises(SandboxGone):
                await here.find(name)
        assert await here.standing() == []


async def test_a_drivers_pod_takes_along_what_it_alone_owns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("NAME", "driver-0"), ("UID", "u-1"), ("NAMESPACE", "default")):
        monkeypatch.setenv(f"ORCHARD_POD_{name}", value)
    async with scene(tmp_path) as (_, api):
        for driver, owned in ((None, True), ("service", False)):
            async with places(tmp_path, driver=driver) as here:
                place = await here.place("box", SPEC)
                found = await api.get(PODS, "box")
                assert found is not None
                owners = found["metadata"].get("ownerReferences") or []
                assert [one["uid"] for one in owners] == (["u-1"] if owned else [])
                await place.destroy()


async def test_drivers_that_come_at_once_share_one_seed(tmp_path: Path) -> None:
    async with scene(tmp_path) as (_, api):
        seeds = await asyncio.gather(*(ensure_seed(api, "seed") for _ in range(8)))
        assert len({*seeds}) == 1
        assert len(seeds[0]) >= 32


async def test_a_seed_that_is_none_is_refused(tmp_path: Path) -> None:
    async with scene(tmp_path) as (_, api):
        secret = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "seed"},
            "data": {"seed": "c2hvcnQ="},
        }
        await api.create(SECRETS, secret)
        with pytest.raises(ConfigError, match="32 bytes"):
            await ensure_seed(api, "seed")


async def test_drivers_that_come_at_once_make_one_policy(tmp_path: Path) -> None:
    async with scene(tmp_path) as (_, api):
        await asyncio.gather(*(ensure_policy(api, KubernetesConfig()) for _ in range(8)))
        assert len(await api.list(NETWORK_POLICIES)) == 1


def test_every_agent_has_a_token_of_its_own() -> None:
    seed = b"s" * 48
    made = {
        derive_token(seed, "a", "u"),
        derive_token(seed, "b", "u"),
        derive_token(seed, "a", "v"),
        derive_token(seed, "a", "u", 1),
        derive_token(seed, "a", "u", 2),
        derive_token(b"t" * 48, "a", "u"),
    }
    assert len(made) == 6
    assert derive_token(seed, "a", "u") == derive_token(seed, "a", "u", 0)
