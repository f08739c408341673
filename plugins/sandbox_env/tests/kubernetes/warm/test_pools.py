"""Claims, fills and drains, over a stand-in for the API server that several drivers share."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from orchard_env.kubernetes import labels
from orchard_env.kubernetes.places import PodPlaces
from orchard_env.kubernetes.resources import PODS
from orchard_env.testing.cluster.settings import Fault

from orchard_core import SandboxExists, SandboxGone

from ..clusters import ENOUGH
from .scenes import SMALL, Scene, scene, until


async def test_a_sandbox_takes_a_pod_that_waits_by_one_change(tmp_path: Path) -> None:
    async with scene(tmp_path) as here, here.places(fill=True, pool={"target": 2}) as places:
        await until(places, lambda pool: pool.ready == 2)
        session = await places.session()
        before = dict(session.api.calls)
        spec = SMALL.model_copy(update={"labels": {"team": "x", "orchard.dev/tenant": "t"}})
        place = await places.place("sb-0123456789abcdef", spec)
        spent = {call: n - before.get(call, 0) for call, n in session.api.calls.items()}
        assert spent["patch pods"] == 1
        told = (await places.standing())[0]
        assert (told.id, told.spec) == ("sb-0123456789abcdef", spec)
        (pod,) = [one for one in await here.pods() if labels.SANDBOX in one["metadata"]["labels"]]
        assert labels.spec_labels(spec).items() <= pod["metadata"]["labels"].items()
        assert pod["metadata"]["labels"][labels.DRIVER] == session.driver
        assert pod["spec"]["activeDeadlineSeconds"] >= spec.ttl_s
        await place.destroy()


async def test_no_pod_is_claimed_twice_however_many_drivers_want_it(tmp_path: Path) -> None:
    async with scene(tmp_path) as here, here.places(fill=True, pool={"target": 12}, driver="s") as keeper:
        await until(keeper, lambda pool: pool.ready == 12)
        keeper.leads = lambda: False
        async with here.places() as one, here.places() as other:
            made = await asyncio.gather(
                *(
                    places.place(f"sb-{number:015x}{last}", SMALL)
                    for number in range(10)
                    for places, last in ((one, "a"), (other, "b"))
                )
            )
            hits, misses = (
                sum(getattr(places.pools()[0], what) for places in (one, other))
                for what in ("hits", "misses")
            )
            # Who is beaten to every pod that it tries makes one of its own.
            assert 0 < hits <= 12
            assert hits + misses == 20
            assert len(await here.waiting()) == 12 - hits
            owners = [pod["metadata"]["labels"][labels.SANDBOX] for pod in await here.pods()]
            assert len({*owners}) == len(owners) == 20
            await asyncio.gather(*(place.destroy() for place in made))


async def test_a_claim_whose_answer_was_lost_is_still_ones_own(tmp_path: Path) -> None:
    async with scene(tmp_path) as here, here.places(fill=True, pool={"target": 1}) as places:
        await until(places, lambda pool: pool.ready == 1)
        here.cluster.suffer(Fault(method="PATCH", path="/pods", kind="lose"))
        place = await places.place("sb-0123456789abcdef", SMALL)
        assert (places.pools()[0].hits, places.pools()[0].lost) == (1, 0)
        await place.destroy()


async def test_a_used_pod_never_comes_back(tmp_path: Path) -> None:
    async with scene(tmp_path) as here, here.places(fill=True, pool={"target": 1}) as places:
        (used,) = await _names(here, places, 1)
        place = await places.place("sb-0123456789abcdef", SMALL)
        await until(places, lambda pool: pool.ready == 1)
        await place.destroy()
        assert used not in [pod["metadata"]["name"] for pod in await here.pods()]
        assert used not in await _names(here, places, 1)


async def test_a_claimed_sandbox_is_found_by_its_id_and_by_no_other_name(tmp_path: Path) -> None:
    async with scene(tmp_path) as here, here.places(fill=True, pool={"target": 1}) as one:
        (name,) = await _names(here, one, 1)
        place = await one.place("sb-0123456789abcdef", SMALL)
        async with here.places() as other:
            _, told = await other.find("sb-0123456789abcdef")
            assert told.id == "sb-0123456789abcdef"
            with pytest.raises(SandboxGone):
                await other.find(name)
            with pytest.raises(SandboxExists):
                await other.place("sb-0123456789abcdef", SMALL)
        await place.destroy()


async def test_a_pod_that_waits_is_no_sandbox(tmp_path: Path) -> None:
    async with scene(tmp_path) as here, here.places(fill=True, pool={"target": 1}) as places:
        (name,) = await _names(here, places, 1)
        assert await places.standing() == []
        with pytest.raises(SandboxGone):
            await places.find(name)


async def test_what_a_pod_that_runs_cannot_be_given_is_made_afresh(tmp_path: Path) -> None:
    async with scene(tmp_path) as here, here.places(fill=True, pool={"target": 1}) as places:
        await until(places, lambda pool: pool.ready == 1)
        place = await places.place("sb-0123456789abcdef", SMALL.model_copy(update={"memory_mb": 65}))
        await place.destroy()
        # A name that somebody chose is kept unique by the name of its pod.
        place = await places.place("chosen", SMALL)
        with pytest.raises(SandboxExists):
            await places.place("chosen", SMALL)
        await place.destroy()
        assert (places.pools()[0].hits, places.pools()[0].misses) == (0, 0)


async def test_pools_outlive_every_process_of_a_named_driver(tmp_path: Path) -> None:
    async with scene(tmp_path) as here:
        async with here.places(fill=True, pool={"target": 3}, driver="service") as places:
            before = await _names(here, places, 3)
        async with here.places(fill=True, pool={"target": 3}, driver="service") as places:
            await until(places, lambda pool: pool.ready == 3)
            session = await places.session()
            assert "create pods" not in session.api.calls
            assert {*await here.waiting()} == {*before}


async def test_an_unnamed_driver_that_ends_leaves_no_pods(tmp_path: Path) -> None:
    async with scene(tmp_path) as here:
        async with here.places(fill=True, pool={"target": 2}) as places:
            await until(places, lambda pool: pool.ready == 2)
        assert await here.waiting() == []


@pytest.mark.slow
async def test_pods_of_an_unnamed_driver_that_was_killed_are_reaped(tmp_path: Path) -> None:
    async with scene(tmp_path) as here, here.places(fill=True, pool={"target": 2}) as dead:
        await until(dead, lambda pool: pool.ready == 2)
        dead.leads = lambda: False
        session = await dead.session()
        await session.lease.give_up()
        async with here.places(lease_s=3, reap=True):
            async with asyncio.timeout(ENOUGH):
                while await here.waiting():
                    await asyncio.sleep(0.05)


async def test_only_who_leads_fills(tmp_path: Path) -> None:
    leads = False
    async with scene(tmp_path) as here, here.places(pool={"target": 1}) as places:
        places.leads = lambda: leads
        place = await places.place("sb-0123456789abcdef", SMALL)
        await place.destroy()
        assert await here.waiting() == []
        leads = True
        await until(places, lambda pool: pool.ready == 1)


async def test_pods_of_another_version_are_replaced(tmp_path: Path) -> None:
    async with scene(tmp_path) as here:
        async with here.places(fill=True, pool={"target": 2}, driver="service") as places:
            old = await _names(here, places, 2)
        after = {"injector": "orchard/injector:next", "driver": "service"}
        async with here.places(fill=True, pool={"target": 2}, **after) as places:
            await until(places, lambda pool: pool.ready == 2)
            async with asyncio.timeout(ENOUGH):
                while {*old} & {*await here.waiting()}:
                    await asyncio.sleep(0.01)
            assert len(await here.waiting()) == 2


async def test_a_surplus_is_drained(tmp_path: Path) -> None:
    async with scene(tmp_path) as here:
        async with here.places(fill=True, pool={"target": 6}, driver="service") as places:
            await until(places, lambda pool: pool.ready == 6)
        async with here.places(fill=True, pool={"target": 2}, driver="service") as places:
            await until(places, lambda pool: pool.ready == 2 and pool.coming == 0)
            assert len(await here.waiting()) == 2


async def test_demand_of_all_drivers_is_seen_by_the_one_that_fills(tmp_path: Path) -> None:
    async with scene(tmp_path) as here, here.places(fill=True, pool={"most": 40}, driver="s") as keeper:
        assert keeper.pools()[0].wanted == 0
        async with here.places() as other:
            made = [await other.place(f"sb-{number:016x}", SMALL) for number in range(20)]
            grown = await until(keeper, lambda pool: pool.wanted > 0 and pool.ready >= pool.wanted)
            assert grown.ready > 0
            await asyncio.gather(*(place.destroy() for place in made))


async def test_a_pool_that_cannot_be_filled_says_why_and_is_filled_when_it_can(tmp_path: Path) -> None:
    async with scene(tmp_path) as here:
        refusal = Fault(method="POST", path="/pods", status=403, message="exceeded quota: pods=0", count=2)
        here.cluster.suffer(refusal)
        async with here.places(fill=True, pool={"target": 2}) as places:
            told = await until(places, lambda pool: bool(pool.fault))
            assert "exceeded quota" in told.fault
            await until(places, lambda pool: pool.ready == 2 and not pool.fault)
            assert refusal.count == 0


async def test_pods_that_end_while_they_wait_are_replaced(tmp_path: Path) -> None:
    async with scene(tmp_path) as here, here.places(fill=True, pool={"target": 1}) as places:
        (name,) = await _names(here, places, 1)
        await here.api.patch(PODS, name, {"status": {"phase": "Failed", "reason": "Evicted"}})
        async with asyncio.timeout(ENOUGH):
            while name in await here.waiting():
                await asyncio.sleep(0.01)
        await until(places, lambda pool: pool.ready == 1)


async def test_hits_and_misses_are_counted(tmp_path: Path) -> None:
    async with scene(tmp_path) as here, here.places(fill=True, pool={"target": 1}) as places:
        assert places.pools()[0].hit_rate is None
        await until(places, lambda pool: pool.ready == 1)
        places.leads = lambda: False
        made = [await places.place(f"sb-{number:016x}", SMALL) for number in range(4)]
        told = places.pools()[0]
        assert (told.hits, told.misses, told.hit_rate) == (1, 3, 0.25)
        await asyncio.gather(*(place.destroy() for place in made))


async def _names(here: Scene, places: PodPlaces, count: int) -> list[str]:
    await until(places, lambda pool: pool.ready == count)
    return await here.waiting()
