"""Quotas are exact: over callers at once, over replicas, and when something was forgotten."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from orchard_env.service.admission.fair import AdmissionLimits, FairAdmission
from orchard_env.service.admission.gate import GateLimits
from orchard_env.service.faults import TooManyRequests
from orchard_env.service.seams import Standing, Stands, Tenant, Work
from orchard_env.service.state.contract import SharedState
from orchard_env.service.state.memory import MemoryState
from orchard_env.service.state.open import open_state
from orchard_env.service.tenancy.books import FileBook
from orchard_env.service.tenancy.issuing import set_tenant
from orchard_env.service.tenancy.key_file import FileKeys
from orchard_env.service.tenancy.keyed import KeyedTenancy
from orchard_env.service.tenancy.quota import Quota, Unstated

from orchard_core import QuotaExceeded, SandboxSpec, ServiceOverloaded

from ..redis_server import RedisServer, running_redis

ALICE = Tenant(name="alice")


@pytest.fixture(params=["memory", "redis"])
async def replicas(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[list[KeyedTenancy]]:
    """Two replicas (with memory: one, twice) whose tenant alice may have 3 sandboxes, 2 cores and 4 GiB."""
    if request.param == "memory":
        yield [await tenancy(tmp_path, MemoryState())] * 2
        return
    with running_redis() as server:
        states = [open_state(server.settings()) for _ in range(2)]
        yield [await tenancy(tmp_path, state) for state in states]
        for state in states:
            await state.close()


async def tenancy(tmp_path: Path, state: SharedState, **limits: float) -> KeyedTenancy:
    book = FileBook(tmp_path / "keys.json")
    given = limits or {"sandboxes": 3, "cpu": 2.0, "memory_mb": 4096}
    await set_tenant(book, "alice", limits=given)
    return KeyedTenancy(FileKeys(tmp_path / "keys.json"), state, unstated=Unstated(cpu=0.5, memory_mb=512))


def spec(name: str, **fields: float) -> SandboxSpec:
    return SandboxSpec.model_validate({"name": name, **fields})


def stands(*specs: SandboxSpec) -> Stands:
    async def listed() -> list[Standing]:
        return [Standing(sandbox_id=str(one.name), spec=one) for one in specs]

    return listed


async def never() -> list[Standing]:
    raise AssertionError("what stands was listed although the count is right")


async def test_of_many_creates_at_once_over_two_replicas_exactly_the_quota_is_let_in(
    replicas: list[KeyedTenancy],
) -> None:
    asked = await asyncio.gather(
        *(replicas[n % 2].allow_create(ALICE, spec(f"s{n}"), stands()) for n in range(40)),
        return_exceptions=True,
    )
    assert asked.count(None) == 3
    assert all(isinstance(one, QuotaExceeded) for one in asked if one is not None)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"cpu": 1.75}, "uses 0.5 CPU cores of 2 CPU cores, and this asks for 1.75 CPU cores"),
        ({"memory_mb": 4000}, "uses 512 MiB of memory of 4096 MiB of memory, and this asks for 4000"),
    ],
)
async def test_a_refusal_says_which_limit_how_much_is_used_and_what_was_asked(
    replicas: list[KeyedTenancy], fields: dict[str, float], words: str
) -> None:
    first = spec("first")
    await replicas[0].allow_create(ALICE, first, stands())
    with pytest.raises(QuotaExceeded, match=words) as refused:
        await replicas[1].allow_create(ALICE, spec("second", **fields), stands(first))
    assert "delete sandboxes" in refused.value.hint


async def test_what_was_freed_by_one_replica_is_free_for_the_other(replicas: list[KeyedTenancy]) -> None:
    for number in range(3):
        await replicas[0].allow_create(ALICE, spec(f"s{number}"), stands())
    await replicas[1].freed("alice", "s1")
    await replicas[1].allow_create(ALICE, spec("s3"), stands(spec("s0"), spec("s2")))
    usage = await replicas[0].usage("alice")
    assert (usage.sandboxes, usage.cpu, usage.memory_mb) == (3, 1.5, 1536)


async def test_while_the_count_is_right_nobody_lists_what_stands(replicas: list[KeyedTenancy]) -> None:
    await replicas[0].allow_create(ALICE, spec("s0"), stands())
    await replicas[0].allow_create(ALICE, spec("s1"), never)


async def test_a_service_that_starts_counts_what_stands_already(replicas: list[KeyedTenancy]) -> None:
    before = [spec("old-1"), spec("old-2", cpu=0.25)]
    await replicas[0].allow_create(ALICE, spec("new"), stands(*before))
    with pytest.raises(QuotaExceeded, match="3 sandboxes of 3"):
        await replicas[1].allow_create(ALICE, spec("more"), stands(*before, spec("new")))


async def test_tenants_do_not_count_against_each_other(replicas: list[KeyedTenancy]) -> None:
    for number in range(3):
        await replicas[0].allow_create(ALICE, spec(f"s{number}"), stands())
    await replicas[0].allow_create(Tenant(name="bob"), spec("b0"), stands())
    assert (await replicas[0].usage("bob")).sandboxes == 1


async def test_while_redis_is_away_the_quota_holds_by_what_stands(
    redis_server: RedisServer, tmp_path: Path
) -> None:
    state = open_state(redis_server.settings())
    one = await tenancy(tmp_path, state)
    await one.allow_create(ALICE, spec("s0"), stands())
    redis_server.kill()
    standing = [spec("s0"), spec("of-another-replica")]
    await one.allow_create(ALICE, spec("s1"), stands(*standing))
    with pytest.raises(QuotaExceeded):
        await one.allow_create(ALICE, spec("s2"), stands(*standing))
    await one.freed("alice", "s1")
    redis_server.start()
    async with asyncio.timeout(30):
        while state.health().detail:
            await asyncio.sleep(0.01)
    await one.allow_create(ALICE, spec("s3"), stands(*standing))
    with pytest.raises(QuotaExceeded, match="3 sandboxes of 3"):
        await one.allow_create(ALICE, spec("s4"), stands(*standing))
    await state.close()


async def test_when_redis_goes_away_under_a_create_what_stands_decides(
    redis_server: RedisServer, tmp_path: Path
) -> None:
    state = open_state(redis_server.settings())
    one = await tenancy(tmp_path, state)
    await one.allow_create(ALICE, spec("s0"), stands())
    redis_server.kill()
    standing = [spec("s0"), spec("of-another-1"), spec("of-another-2")]
    with pytest.raises(QuotaExceeded):
        await one.allow_create(ALICE, spec("s1"), stands(*standing))
    await state.close()


@pytest.mark.parametrize(
    ("work", "limits", "burst"),
    [(Work.CREATE, {"creates_per_min": 30}, 5), (Work.EXEC, {"execs_per_s": 0.5}, 1)],
)
async def test_a_rate_lets_a_burst_in_and_tells_the_rest_when_to_come_again(
    tmp_path: Path, work: Work, limits: dict[str, float], burst: int
) -> None:
    state = MemoryState(lambda: 0.0)
    admission = FairAdmission(await tenancy(tmp_path, state, **limits), state)
    for _ in range(burst):
        async with admission.enter(ALICE, work):
            pass
    with pytest.raises(TooManyRequests, match="tenant alice is over its") as refused:
        async with admission.enter(ALICE, work):
            pass
    assert refused.value.retry_after_s == pytest.approx(2.0)
    async with admission.enter(Tenant(name="bob"), work), admission.enter(ALICE, Work.LIGHT):
        pass


async def test_a_draining_replica_takes_only_light_work(tmp_path: Path) -> None:
    state = MemoryState()
    admission = FairAdmission(await tenancy(tmp_path, state), state)
    admission.drain()
    with pytest.raises(ServiceOverloaded, match="another replica answers"):
        async with admission.enter(ALICE, Work.CREATE):
            pass
    async with admission.enter(ALICE, Work.LIGHT):
        pass


async def test_the_weight_of_a_tenant_is_its_share_of_the_turns(tmp_path: Path) -> None:
    state = MemoryState()
    book = FileBook(tmp_path / "keys.json")
    await set_tenant(book, "pays", weight=3.0)
    one = KeyedTenancy(FileKeys(tmp_path / "keys.json"), state, default=Quota())
    only = GateLimits(at_once=1, queue=1000, tenant_queue=1000)
    admission = FairAdmission(one, state, AdmissionLimits(exec=only))
    order: list[str] = []

    async def work(tenant: str) -> None:
        async with admission.enter(Tenant(name=tenant), Work.EXEC):
            order.append(tenant)
            await asyncio.sleep(0)

    await asyncio.gather(*(work("floods") for _ in range(60)), *(work("pays") for _ in range(30)))
    assert order[1:41].count("pays") == 30
    assert admission.loads[Work.EXEC].waiting == 0
