"""What tenants are charged for: what they asked for, for as long as it stood."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from orchard_env.costs.prices import Size
from orchard_env.service.observe.accounts import Accounts
from orchard_env.service.observe.observing import observing, watching
from orchard_env.service.observe.reasons import attribution
from orchard_env.service.observe.settings import ObserveSettings, observe_settings
from orchard_env.service.observe.usage import UsageReader
from orchard_env.service.tenancy.quota import Unstated

from orchard_core import (
    ConfigError,
    NodeLost,
    OrchardError,
    SandboxEvicted,
    SandboxOutOfMemory,
    SandboxPreempted,
    SandboxSpec,
    SpecRefused,
    Unschedulable,
)

from .conftest import parts


class Clock:
    """Goes when it is told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def accounts_of(clock: Clock) -> Accounts:
    """A vCPU costs a dollar an hour, a GiB ten cents."""

    def size(spec: SandboxSpec) -> Size:
        return Size(cpu=spec.cpu or 1.0, memory_gib=(spec.memory_mb or 1024) / 1024)

    return Accounts(size=size, usd_per_hour=lambda one: one.cpu + one.memory_gib / 10, clock=clock)


def test_hours_and_cost_are_what_was_asked_for_times_how_long_it_stood() -> None:
    clock = Clock()
    accounts = accounts_of(clock)
    accounts.begin("a", "alice", SandboxSpec(cpu=2, memory_mb=8192))
    clock.now += 1800
    accounts.begin("b", "alice", SandboxSpec(cpu=1, memory_mb=2048))
    clock.now += 1800
    assert accounts.end("a")
    clock.now += 3600
    account = accounts.settled()["alice"]
    assert account.cpu_seconds == pytest.approx(2 * 3600 + 5400)
    assert account.gib_hours == pytest.approx(8 + 3)
    assert account.usd == pytest.approx(2.8 + 1.2 * 1.5)
    assert (account.standing, account.cpu) == (1, 1.0)


def test_a_sandbox_counts_once_however_often_its_beginning_or_end_is_told() -> None:
    clock = Clock()
    accounts = accounts_of(clock)
    for _ in range(3):
        accounts.begin("a", "alice", SandboxSpec())
    clock.now += 60
    assert [accounts.end("a"), accounts.end("a")] == [True, False]
    clock.now += 3600
    assert accounts.settled()["alice"].cpu_seconds == pytest.approx(60)


def test_nothing_is_charged_for_ever_by_what_rounding_leaves_over() -> None:
    clock = Clock()
    accounts = accounts_of(clock)
    for cpu in (0.1, 0.2, 0.3):
        accounts.begin(str(cpu), "alice", SandboxSpec(cpu=cpu))
    for cpu in (0.1, 0.2, 0.3):
        accounts.end(str(cpu))
    clock.now += 10**9
    assert accounts.settled()["alice"].cpu_seconds == 0


def test_an_agent_is_not_believed_more_than_its_cpus_can_have_done() -> None:
    clock = Clock()
    accounts = accounts_of(clock)
    accounts.begin("a", "alice", SandboxSpec(cpu=2))
    clock.now += 10
    accounts.used("a", 1e12)
    assert accounts.settled()["alice"].used_cpu_seconds == 20
    for told in (float("nan"), -5.0, float("-inf")):
        clock.now += 10
        accounts.used("a", told)
    assert accounts.settled()["alice"].used_cpu_seconds == 20


def test_an_agent_that_began_anew_has_used_what_it_tells_since() -> None:
    clock = Clock()
    accounts = accounts_of(clock)
    accounts.begin("a", "alice", SandboxSpec(cpu=1))
    for told in (5.0, 7.0, 1.0):
        clock.now += 100
        accounts.used("a", told)
    assert accounts.settled()["alice"].used_cpu_seconds == 8.0


async def test_what_commands_really_used_is_asked_of_a_real_agent() -> None:
    watch = observing(ObserveSettings(usage_s=0))
    services = parts(watch)
    fleet = services.fleet
    await fleet.start()
    try:
        entry = await fleet.create(SandboxSpec(network="host"), tenant="alice")  # type: ignore[arg-type]
        sandbox = await entry.ready(30)
        await sandbox.exec("i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done")
        idle = sandbox.idle_s  # type: ignore[attr-defined]
        await UsageReader(fleet, watch.metrics.accounts, every_s=1).ask()
        assert watch.metrics.accounts.settled()["alice"].used_cpu_seconds > 0
        assert sandbox.idle_s >= idle  # type: ignore[attr-defined] # no use of the sandbox
    finally:
        await fleet.drain()


async def test_what_a_sandbox_used_at_last_is_asked_before_it_is_destroyed() -> None:
    watch = observing(ObserveSettings(usage_s=3600))
    fleet = parts(watch).fleet
    await fleet.start()
    async with watching(watch, fleet):
        entry = await fleet.create(SandboxSpec(network="host"), tenant="alice")  # type: ignore[arg-type]
        await (await entry.ready(30)).exec("i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done")
        await fleet.delete(entry)
        account = watch.metrics.accounts.settled()["alice"]
        assert (account.used_cpu_seconds > 0, account.standing) == (True, 0)
    await fleet.drain()


async def test_a_second_listener_tells_metrics_without_a_key_and_nothing_else() -> None:
    watch = observing(ObserveSettings(usage_s=0))
    from orchard_env.service.observe.listener import metrics_listener

    async def asked(address: str, line: bytes) -> bytes:
        host, _, port = address.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(line + b"\r\nHost: x\r\n\r\n")
        said = await reader.read()
        writer.close()
        return said

    async with metrics_listener("127.0.0.1:0", watch.metrics.exposition) as address:
        good = await asked(address, b"GET /metrics?x=1 HTTP/1.1")
        assert good.startswith(b"HTTP/1.1 200 OK")
        assert b"orchard_env_requests_total" in good
        for line in (b"GET / HTTP/1.1", b"POST /metrics HTTP/1.1", b"GET /status HTTP/1.1", b"nonsense"):
            assert (await asked(address, line)).startswith(b"HTTP/1.1 404")
        assert await asked(address, b"x" * 100_000) == b""


@pytest.mark.parametrize("listen", ["nowhere", "127.0.0.1:x", "127.0.0.1:99999", "203.0.113.1:80"])
async def test_a_listener_that_cannot_be_had_is_told_before_anything_is_served(listen: str) -> None:
    watch = observing(ObserveSettings(usage_s=0, listen=listen))
    with pytest.raises(ConfigError, match=r"observe\.listen"):
        async with watching(watch, parts(observing(ObserveSettings())).fleet):
            pass


def test_settings_that_are_none_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no_such"):
        observe_settings({"no_such": 1})
    with pytest.raises(ConfigError, match="group"):
        observe_settings([1])
    with pytest.raises(ConfigError, match="no node type"):
        observing(ObserveSettings(node="nowhere"))
    short = tmp_path / "key"
    short.write_text("short\n")
    with pytest.raises(ConfigError, match="16 characters"):
        observing(ObserveSettings(metrics_key_file=short))
    with pytest.raises(ConfigError, match="cannot be read"):
        observing(ObserveSettings(metrics_key_file=tmp_path / "missing"))


def test_sandboxes_are_priced_by_node_type_and_spot(tmp_path: Path) -> None:
    size, full = ObserveSettings(node="published-32").accounting(Unstated(cpu=2.0, memory_mb=8192))
    _, spot = ObserveSettings(node="published-32", spot=True).accounting(Unstated())
    one = size(SandboxSpec())
    assert full(one) == pytest.approx(1.751 / 16)
    assert spot(one) == pytest.approx(full(one) * 0.2002)


@pytest.mark.parametrize(
    ("fault", "whose"),
    [
        (SpecRefused("x"), "user"),
        (Unschedulable("x"), "infrastructure"),
        (SandboxOutOfMemory("x", by="agent"), "agent"),
        (SandboxEvicted("x", by="agent"), "infrastructure"),
        (SandboxPreempted("x"), "infrastructure"),
        (NodeLost("x", by="infrastructure"), "infrastructure"),
    ],
)
def test_a_failure_is_somebodys(fault: OrchardError, whose: str) -> None:
    assert attribution(fault) == whose
