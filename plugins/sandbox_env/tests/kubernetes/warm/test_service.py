"""A service has its provider's pools filled, by the replica that leads."""

from __future__ import annotations

import asyncio
from pathlib import Path

from orchard_env.kubernetes.provider import open_kubernetes
from orchard_env.service.assembly import assembled
from orchard_env.service.pools import keeping_pools
from orchard_env.service.settings import ServiceSettings

from ..clusters import ENOUGH
from .scenes import scene


async def test_a_service_that_is_the_only_one_fills_the_pools(tmp_path: Path) -> None:
    async with scene(tmp_path) as here:
        provider = open_kubernetes(here.config(pool={"target": 2}, driver="service"))
        async with assembled(provider, ServiceSettings()), asyncio.timeout(ENOUGH):
            while len(await here.waiting()) < 2:
                await asyncio.sleep(0.02)
        await provider.close()
        # They wait for the next process of that name.
        assert len(await here.waiting()) == 2


async def test_a_replica_that_comes_to_lead_fills_and_the_others_do_not(tmp_path: Path) -> None:
    leader = "nobody"
    async with scene(tmp_path) as here:
        config = here.config(pool={"target": 1}, driver="service")
        one, other = open_kubernetes(config), open_kubernetes(config)
        async with (
            keeping_pools(one, lambda: leader == "one"),
            keeping_pools(other, lambda: leader == "other"),
            asyncio.timeout(ENOUGH),
        ):
            sessions = [await one.session(), await other.session()]
            leader = "other"
            while not await here.waiting():
                await asyncio.sleep(0.02)
            assert ["create pods" in session.api.calls for session in sessions] == [False, True]
        await one.close()
        await other.close()
