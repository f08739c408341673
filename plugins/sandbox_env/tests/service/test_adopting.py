"""Taking over what another process made: one at a time for each sandbox, and never for a stranger."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from orchard_env.service.entry import TENANT_LABEL
from orchard_env.service.faults import SandboxUnknown
from orchard_env.service.fleet import Fleet
from orchard_env.service.settings import ServiceSettings

from orchard_core import (
    AdoptingAgentProvider,
    AgentClient,
    SandboxExists,
    SandboxGone,
    SandboxSpec,
    StandingSandbox,
)

from .standing_agents import CAPABILITIES, StandingAgent, StandingAgents, end_all


class Watched(StandingAgents):
    """Counts what is asked of it; what is slow to be found waits until it is let go."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.asked: Counter[str] = Counter()
        self.slow = ""
        self.go = asyncio.Event()

    async def find(self, sandbox_id: str) -> tuple[StandingAgent, StandingSandbox]:
        """See AdoptingPlaces."""
        self.asked["find"] += 1
        if sandbox_id == self.slow:
            await self.go.wait()
        bare, found = await super().find(sandbox_id)
        return _Counted(bare, self.asked), found


class _Counted(StandingAgent):
    def __init__(self, bare: StandingAgent, asked: Counter[str]) -> None:
        super().__init__(bare._path, bare._spec)
        self._asked = asked

    async def attach(self) -> AgentClient:
        """See StandingPlace."""
        self._asked["attach"] += 1
        return await super().attach()


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    end_all(tmp_path)


def provider(places: StandingAgents) -> AdoptingAgentProvider:
    return AdoptingAgentProvider(name="standing", capabilities=CAPABILITIES, places=places)


async def left_standing(root: Path, *names: str, tenant: str) -> None:
    """Sandboxes that another process made."""
    maker = provider(StandingAgents(root))
    for name in names:
        await maker.create(SandboxSpec(name=name, labels={TENANT_LABEL: tenant}, network="host"))  # type: ignore[arg-type]
    await maker.release()


async def test_a_strangers_sandbox_costs_what_one_costs_that_nobody_has_and_is_left_alone(root: Path) -> None:
    await left_standing(root, "theirs", tenant="theirs")
    places = Watched(root)
    fleet = Fleet(provider(places), settings=ServiceSettings())
    costs = []
    for name in ("theirs", "nobodys"):
        with pytest.raises(SandboxUnknown) as unknown:
            await fleet.get(name, tenant="ours")
        assert unknown.value.message == f"there is no sandbox {name!r}"
        costs.append(dict(places.asked))
        places.asked.clear()
    with pytest.raises(SandboxExists):
        await fleet.check_free("theirs", "ours")
    costs.append(dict(places.asked))
    assert costs == [{"find": 1}] * 3
    assert fleet.size == 0
    assert (await fleet.get("theirs", tenant="theirs")).tenant == "theirs"
    places.asked.clear()
    with pytest.raises(SandboxUnknown):
        await fleet.get("theirs", tenant="ours")
    assert places.asked == {"find": 1}, "also when its owner has been here"
    await fleet.drain()


async def test_one_that_is_slow_to_be_found_keeps_nobody_from_the_others(root: Path) -> None:
    await left_standing(root, "slow", "quick", tenant="ours")
    places = Watched(root)
    places.slow = "slow"
    adopting = provider(places)
    both = [asyncio.create_task(adopting.adopt("slow")) for _ in range(2)]
    async with asyncio.timeout(60):
        assert (await adopting.adopt("quick")).id == "quick"
        assert not any(task.done() for task in both)
        places.go.set()
        one, other = await asyncio.gather(*both)
    assert one is other
    assert places.asked["attach"] == 2, "each is taken over once"
    await adopting.release()


async def test_one_that_is_not_wanted_is_as_one_that_does_not_stand(root: Path) -> None:
    await left_standing(root, "box", tenant="ours")
    adopting = provider(StandingAgents(root))
    with pytest.raises(SandboxGone):
        await adopting.adopt("box", wanted=lambda spec: False)
    adopted = await adopting.adopt("box", wanted=lambda spec: spec.labels[TENANT_LABEL] == "ours")
    with pytest.raises(SandboxGone):
        await adopting.adopt("box", wanted=lambda spec: False)
    assert await adopting.adopt("box") is adopted
    assert await adopted.alive()
    await adopting.release()
