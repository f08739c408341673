"""The fleet by itself, over a provider that fails as it is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from orchard_env.service.entry import TENANT_LABEL, Entry, Status
from orchard_env.service.faults import SandboxBusy, SandboxUnknown, WaitEnded
from orchard_env.service.fleet import Fleet
from orchard_env.service.settings import ServiceSettings

from orchard_core import (
    ImagePullFailed,
    SandboxCreateFailed,
    SandboxExists,
    SandboxSpec,
    ServiceOverloaded,
    Snapshot,
)
from orchard_core.testing import FakeProvider, FakeSandbox


class Held(FakeProvider):
    """A provider whose creations wait until they are let go, and then may fail."""

    def __init__(self, fault: Exception | None = None) -> None:
        super().__init__()
        self.go = asyncio.Event()
        self.fault = fault

    async def create(self, spec: SandboxSpec, *, restore: Snapshot | None = None) -> FakeSandbox:
        """See SandboxProvider."""
        await self.go.wait()
        if self.fault is not None:
            raise self.fault
        return await super().create(spec, restore=restore)


def fleet(
    provider: FakeProvider, gone: Callable[[str, str], None] = lambda _t, _s: None, **settings: float
) -> Fleet:
    async def told(tenant: str, sandbox_id: str) -> None:
        gone(tenant, sandbox_id)

    return Fleet(provider, settings=ServiceSettings(**settings), gone=told)  # type: ignore[arg-type]


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not true():
            await asyncio.sleep(0.01)


async def test_an_entry_is_pending_until_its_sandbox_is_there() -> None:
    held = Held()
    sandboxes = fleet(held)
    entry = await sandboxes.create(SandboxSpec(), tenant="a")
    assert entry.status.value == "pending"
    with pytest.raises(SandboxBusy):
        _ = entry.sandbox
    with pytest.raises(WaitEnded):
        await entry.ready(0.01)
    held.go.set()
    assert (await entry.ready(60)).id == entry.id
    assert entry.status.value == "ready"


async def test_the_owner_stands_in_the_labels_whatever_the_client_says() -> None:
    entry = await fleet(Held()).create(SandboxSpec(labels={TENANT_LABEL: "other"}), tenant="a")
    assert entry.tenant == "a"


async def test_another_tenants_sandbox_is_as_unknown_as_none() -> None:
    sandboxes = fleet(Held())
    entry = await sandboxes.create(SandboxSpec(name="theirs"), tenant="a")
    with pytest.raises(SandboxUnknown) as theirs:
        await sandboxes.get("theirs", tenant="b")
    with pytest.raises(SandboxUnknown) as none:
        await sandboxes.get("nobody", tenant="b")
    assert theirs.value.message.replace("theirs", "") == none.value.message.replace("nobody", "")
    assert await sandboxes.get("theirs", tenant="a") is entry
    assert await sandboxes.get("theirs", tenant=None) is entry
    assert await sandboxes.list(tenant="b") == []


async def test_why_a_sandbox_did_not_come_up_is_told_to_whoever_waits() -> None:
    held = Held(ImagePullFailed("no such image"))
    sandboxes = fleet(held)
    entry = await sandboxes.create(SandboxSpec(), tenant="a")
    held.go.set()
    with pytest.raises(ImagePullFailed):
        await entry.ready(60)
    assert entry.status.value == "failed"
    assert (await sandboxes.get(entry.id, tenant="a")).fault is entry.fault


async def test_a_provider_that_breaks_costs_its_own_sandbox_only() -> None:
    held = Held(ZeroDivisionError("a bug"))
    entry = await fleet(held).create(SandboxSpec(), tenant="a")
    held.go.set()
    with pytest.raises(SandboxCreateFailed, match="a bug"):
        await entry.ready(60)


async def test_a_sandbox_that_takes_too_long_has_failed() -> None:
    entry = await fleet(Held()).create(SandboxSpec(), tenant="a", limit_s=0.01)
    with pytest.raises(SandboxCreateFailed, match=r"0\.01 s"):
        await entry.ready(60)


async def test_deleting_what_is_still_made_ends_the_making() -> None:
    held, gone = Held(), list[str]()
    sandboxes = fleet(held, gone=lambda _, sandbox_id: gone.append(sandbox_id))
    entry = await sandboxes.create(SandboxSpec(), tenant="a")
    await sandboxes.delete(entry)
    held.go.set()
    assert entry.status.value == "failed"
    assert gone == [entry.id]
    assert await sandboxes.list(tenant=None) == []


async def test_the_queue_is_left_however_the_making_ends() -> None:
    inside = 0

    @asynccontextmanager
    async def slot() -> AsyncIterator[None]:
        nonlocal inside
        inside += 1
        yield
        inside -= 1

    held = Held(ImagePullFailed("no"))
    entry = await fleet(held).create(SandboxSpec(), tenant="a", slot=slot())
    assert inside == 1
    held.go.set()
    await until(lambda: entry.status is Status.FAILED and not inside)


async def test_a_refusal_at_the_queue_leaves_nothing() -> None:
    class Full:
        async def __aenter__(self) -> None:
            raise ServiceOverloaded("full", retry_after_s=3)

        async def __aexit__(self, *exc: object) -> None: ...

    sandboxes = fleet(Held())
    with pytest.raises(ServiceOverloaded):
        await sandboxes.create(SandboxSpec(name="n"), tenant="a", slot=Full())
    await sandboxes.create(SandboxSpec(name="n"), tenant="a")


async def test_a_name_is_taken_from_the_request_on() -> None:
    sandboxes = fleet(Held())
    await sandboxes.create(SandboxSpec(name="n"), tenant="a")
    with pytest.raises(SandboxExists):
        await sandboxes.create(SandboxSpec(name="n"), tenant="a")
    with pytest.raises(SandboxExists):
        await sandboxes.check_free("n", "b")


async def test_a_name_whose_sandbox_failed_is_free_for_its_tenant_only() -> None:
    held = Held(ImagePullFailed("no"))
    sandboxes = fleet(held)
    entry = await sandboxes.create(SandboxSpec(name="n"), tenant="a")
    held.go.set()
    await until(lambda: entry.status is Status.FAILED)
    with pytest.raises(SandboxExists):
        await sandboxes.check_free("n", "b")
    await sandboxes.check_free("n", "a")


async def test_more_than_the_service_may_have_is_refused() -> None:
    sandboxes = fleet(Held(), max_sandboxes=1)
    await sandboxes.create(SandboxSpec(), tenant="a")
    with pytest.raises(ServiceOverloaded) as refused:
        await sandboxes.create(SandboxSpec(), tenant="a")
    assert refused.value.retry_after_s


async def test_only_sandboxes_that_ever_sent_a_heartbeat_are_reaped_for_silence() -> None:
    provider = Held()
    provider.go.set()
    sandboxes = fleet(provider, heartbeat_s=0.05)
    await sandboxes.start()
    beating, silent = [await sandboxes.create(SandboxSpec(), tenant="a") for _ in range(2)]
    await beating.ready(60)
    await silent.ready(60)
    await sandboxes.beat(beating)
    await until(lambda: sandboxes.known() == [silent])
    assert silent.status is Status.READY
    await sandboxes.drain()


async def test_a_service_that_ends_takes_nothing_new_and_destroys_what_dies_with_it() -> None:
    provider = Held()
    provider.go.set()
    sandboxes = fleet(provider, drain_s=1.0)
    entry = await sandboxes.create(SandboxSpec(), tenant="a")
    sandbox = await entry.ready(60)
    await sandboxes.drain()
    assert not await sandbox.alive()
    with pytest.raises(ServiceOverloaded):
        await sandboxes.create(SandboxSpec(), tenant="a")


async def test_what_is_being_made_when_the_service_ends_comes_up_or_is_given_up() -> None:
    sandboxes = fleet(Held(), drain_s=0.05)
    entry: Entry = await sandboxes.create(SandboxSpec(), tenant="a")
    await sandboxes.drain()
    assert entry.status.value == "failed"


async def test_of_those_that_failed_the_latest_are_told_of() -> None:
    held = Held(ImagePullFailed("no such image"))
    held.go.set()
    sandboxes = fleet(held)
    entries = [await sandboxes.create(SandboxSpec(name=f"n{number}"), tenant="a") for number in range(1100)]
    for entry in entries:
        await entry.settled.wait()
    await sandboxes.start()
    await until(lambda: sandboxes.size <= 1024)
    await sandboxes.get("n1099", tenant="a")
    with pytest.raises(SandboxUnknown):
        await sandboxes.get("n0", tenant="a")
    await sandboxes.drain()
