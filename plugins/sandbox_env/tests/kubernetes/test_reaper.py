"""Dead drivers are told from slow ones, and nothing else is touched; against the stand-in for a server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from orchard_env.kubernetes import labels
from orchard_env.kubernetes.api import ClusterApi
from orchard_env.kubernetes.informer import PodInformer
from orchard_env.kubernetes.lease import DriverLease, lease_name
from orchard_env.kubernetes.reaper import Reaper
from orchard_env.kubernetes.resources import LEASES, PODS
from orchard_env.testing.cluster import FakeCluster
from orchard_env.testing.cluster.settings import Fault

from orchard_core import SandboxError

from .clusters import ENOUGH, pod, standin

LASTS_S = 30.0


@dataclass
class Scene:
    """A namespace with a reaper whose clock the case turns."""

    cluster: FakeCluster
    api: ClusterApi
    pods: PodInformer
    now: float = 1000.0
    reaper: Reaper = field(init=False)

    def __post_init__(self) -> None:
        self.reaper = Reaper(
            self.api, self.pods, driver="me", lasts_s=LASTS_S, held={"mine-held"}, clock=lambda: self.now
        )

    async def sandbox(self, name: str, driver: str) -> str:
        """A pod as the provider makes it; its uid."""
        manifest = pod(name)
        manifest["metadata"]["labels"] = {
            labels.MANAGED_BY: labels.MANAGER,
            labels.SANDBOX: name,
            labels.DRIVER: driver,
        }
        manifest["metadata"]["annotations"] = {labels.SPEC: "{}"}
        return self.pods.learn(await self.api.create(PODS, manifest)).uid

    async def lease(self, driver: str) -> None:
        """As a driver takes it; it is renewed by `renew` alone."""
        lease = DriverLease(self.api, driver, LASTS_S)
        await lease.open()
        await lease.stop()

    async def renew(self, driver: str, at: str) -> None:
        """With whatever the driver's clock says."""
        await self.api.patch(LEASES, lease_name(driver), {"spec": {"renewTime": at}})

    async def watch(self, times: int, step_s: float = LASTS_S / 3) -> list[str]:
        """Sweeps, so far apart by the reaper's clock; what was removed."""
        removed: list[str] = []
        for _ in range(times):
            removed += (await self.reaper.sweep()).sandboxes
            self.now += step_s
        return removed

    async def stands(self, name: str) -> bool:
        found = await self.api.get(PODS, name)
        return found is not None and "deletionTimestamp" not in found["metadata"]


@asynccontextmanager
async def scene(folder: Path) -> AsyncIterator[Scene]:
    async with standin(folder) as (cluster, api), PodInformer(api, labels.SANDBOXES) as pods:
        await pods.wait_synced(ENOUGH)
        yield Scene(cluster, api, pods)


async def test_what_a_dead_driver_left_goes_with_its_lease(tmp_path: Path) -> None:
    async with scene(tmp_path) as here:
        await here.lease("dead")
        await here.sandbox("left", "dead")
        assert await here.watch(3) == []
        assert await here.watch(1) == ["left"]
        assert not await here.stands("left")
        assert await here.api.get(LEASES, lease_name("dead")) is None


async def test_a_driver_lives_whatever_its_clock_says(tmp_path: Path) -> None:
    async with scene(tmp_path) as here:
        await here.lease("slow-clock")
        await here.sandbox("kept", "slow-clock")
        for second in range(8):  # years behind, and going backwards
            await here.renew("slow-clock", f"2001-01-01T00:00:{50 - second:02}.000000Z")
            assert await here.watch(1) == []
        assert await here.stands("kept")


async def test_a_renewal_at_the_last_moment_counts(tmp_path: Path) -> None:
    async with scene(tmp_path) as here:
        await here.lease("late")
        await here.sandbox("kept", "late")
        await here.watch(3)
        await here.renew("late", "2030-01-01T00:00:00.000000Z")
        assert await here.watch(3) == []
        assert await here.stands("kept")


async def test_a_driver_without_any_lease_is_given_as_long(tmp_path: Path) -> None:
    async with scene(tmp_path) as here:
        await here.sandbox("left", "never-seen")
        assert await here.watch(3) == []
        assert await here.watch(1) == ["left"]


async def test_a_failed_list_changes_nothing_and_counts_for_nobodys_silence(tmp_path: Path) -> None:
    async with scene(tmp_path) as here:
        await here.lease("unseen")
        await here.sandbox("kept", "unseen")
        await here.watch(3)
        here.cluster.suffer(Fault(method="GET", path="/leases", status=403))
        with pytest.raises(SandboxError):
            await here.watch(1)
        assert await here.watch(3) == []
        assert await here.stands("kept")


async def test_time_in_which_nobody_looked_is_no_silence(tmp_path: Path) -> None:
    async with scene(tmp_path) as here:
        await here.lease("living")
        await here.sandbox("kept", "living")
        await here.watch(1)
        here.now += 100 * LASTS_S  # this process was stopped, and the cluster perhaps too
        assert await here.watch(3) == []
        assert await here.stands("kept")


async def test_pods_that_are_not_provably_ours_stay(tmp_path: Path) -> None:
    async with scene(tmp_path) as here:
        await here.sandbox("left", "dead")
        stranger = pod("stranger")
        stranger["metadata"]["labels"] = {labels.MANAGED_BY: labels.MANAGER, labels.DRIVER: "dead"}
        here.pods.learn(await here.api.create(PODS, stranger))
        assert await here.watch(5) == ["left"]
        assert await here.stands("stranger")


async def test_another_pod_of_the_same_name_stays(tmp_path: Path) -> None:
    async with scene(tmp_path) as here:
        await here.sandbox("name", "dead")
        await here.watch(3)
        here.cluster.silence_watches()
        await here.api.delete(PODS, "name", grace_s=0)
        manifest = pod("name")
        await here.api.create(PODS, manifest)
        assert await here.watch(1) == []
        assert await here.stands("name")


async def test_my_own_sandboxes_are_not_reaped(tmp_path: Path) -> None:
    async with scene(tmp_path) as here:
        await here.sandbox("mine", "me")
        assert await here.watch(12) == []
        assert await here.stands("mine")
