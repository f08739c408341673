"""The provider `remote`: two ways to an agent, heartbeats, and what the user sets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from orchard_env.remote.config import RemoteConfig
from orchard_env.remote.provider import RemoteProvider

from orchard_core import (
    AgentSandbox,
    ConfigError,
    Sandbox,
    SandboxConnectionLost,
    SandboxGone,
    SandboxSpec,
    SandboxUnavailable,
    SandboxUnsupported,
    load_provider,
)

from ..service.running import GENEROUS_S, Running, parts_of, running
from .reachable import Ports, reachable_provider


@pytest.fixture
def ports() -> Ports:
    return Ports()


@pytest.fixture
async def service(ports: Ports) -> AsyncIterator[Running]:
    """A service whose agents can be reached, until their ports are shut."""
    with running(lambda: parts_of(reachable_provider(ports))) as served:
        yield served


@pytest.fixture
async def provider(service: Running) -> AsyncIterator[RemoteProvider]:
    made = RemoteProvider(RemoteConfig(url=service.url))
    yield made
    await made.close()


async def is_direct(sandbox: Sandbox) -> bool:
    assert isinstance(sandbox, AgentSandbox)
    async with sandbox.lent() as client:
        return client.link.direct


async def shut(service: Running, ports: Ports) -> None:
    """From now on nobody reaches an agent by its port."""
    await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(ports.shut(), service.loop))


async def eventually(holds: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(GENEROUS_S):
        while not await holds():
            await asyncio.sleep(0.05)


async def test_calls_go_straight_to_an_agent_that_can_be_reached(provider: RemoteProvider) -> None:
    async with await provider.create(SandboxSpec()) as sandbox:
        assert await is_direct(sandbox)
        assert (await sandbox.exec("echo straight")).stdout == b"straight\n"


async def test_one_that_cannot_be_reached_is_reached_through_the_service(service: Running) -> None:
    provider = RemoteProvider(RemoteConfig(url=service.url, direct="never"))
    async with await provider.create(SandboxSpec()) as sandbox:
        assert not await is_direct(sandbox)
        assert (await sandbox.exec("echo through")).stdout == b"through\n"
    await provider.close()


@pytest.mark.usefixtures("isolation")
async def test_only_the_straight_way_is_refused_where_there_is_none() -> None:
    with running(lambda: parts_of(load_provider("local"))) as service:
        provider = RemoteProvider(RemoteConfig(url=service.url, direct="only"))
        with pytest.raises(SandboxUnavailable, match="direct=auto"):
            await provider.create(SandboxSpec())
        assert await provider.standing() == []
        await provider.close()


async def test_what_nobody_can_reach_any_more_is_reached_through_the_service(
    provider: RemoteProvider, service: Running, ports: Ports
) -> None:
    async with await provider.create(SandboxSpec()) as sandbox:
        running_one = asyncio.create_task(
            sandbox.exec("echo ran >> count; while ! test -e go; do sleep 0.05; done; wc -l < count")
        )

        async def runs() -> bool:
            return (await sandbox.exec("test -e count")).ok

        await eventually(runs)
        before = ports.connections
        await shut(service, ports)
        await sandbox.write(f"{sandbox.spec.workdir}/go", b"")
        assert (await running_one).stdout.strip() == b"1"
        assert not await is_direct(sandbox)
        assert before > 0
        assert ports.connections == before


async def test_a_token_that_has_ended_is_no_end_of_the_sandbox(
    provider: RemoteProvider, service: Running
) -> None:
    async with await provider.create(SandboxSpec()) as sandbox:
        assert isinstance(sandbox, AgentSandbox)
        async with sandbox.lent() as client:
            await client.revoke_token(client.endpoint.token)
        assert (await sandbox.exec("echo on")).stdout == b"on\n"
        assert not await is_direct(sandbox)


async def test_a_network_that_lets_nobody_through_is_tried_once(
    provider: RemoteProvider, service: Running, ports: Ports
) -> None:
    ports.refuses = True
    made = [await provider.create(SandboxSpec()) for _ in range(3)]
    assert ports.connections == 1
    assert [(await sandbox.exec("echo x")).stdout for sandbox in made] == [b"x\n"] * 3


async def test_what_is_begun_straight_is_gone_on_with_through_the_service(
    provider: RemoteProvider, service: Running, ports: Ports
) -> None:
    async with await provider.create(SandboxSpec()) as sandbox:
        process = await sandbox.start("read word; echo got $word")
        await shut(service, ports)
        await process.write(b"it\n")
        assert (await process.wait(GENEROUS_S)).stdout == b"got it\n"
        port = await sandbox.endpoint()
        assert port.token


@pytest.mark.slow
async def test_heartbeats_keep_alive_and_their_end_destroys() -> None:
    with running(lambda: parts_of(reachable_provider(), heartbeat_s=5.0)) as service:
        provider = RemoteProvider(RemoteConfig(url=service.url))
        sandbox = await provider.create(SandboxSpec())
        await asyncio.sleep(7.0)
        assert await sandbox.alive()
        await provider.release()
        other = RemoteProvider(RemoteConfig(url=service.url))

        async def none_stands() -> bool:
            return await other.standing() == []

        await eventually(none_stands)
        await other.close()


async def test_an_end_has_the_services_reason(provider: RemoteProvider, service: Running) -> None:
    sandbox = await provider.create(SandboxSpec())
    with service.client() as client:
        client.delete(f"/sandboxes/{sandbox.id}").raise_for_status()
    with pytest.raises(SandboxGone, match=sandbox.id):
        await sandbox.exec("echo")
    assert not await sandbox.alive()


async def test_labels_tell_runs_apart(service: Running) -> None:
    one, two = (
        RemoteProvider(RemoteConfig(url=service.url, labels={"run": name})) for name in ("one", "two")
    )
    made = await one.create(SandboxSpec(labels={"task": "t"}))
    assert [found.id for found in await one.standing()] == [made.id]
    assert (await one.standing())[0].spec.labels == {"task": "t"}
    assert await two.standing() == []
    await one.close()
    await two.close()


async def test_pieces_of_this_machine_cannot_be_shown_elsewhere(provider: RemoteProvider) -> None:
    assert not (await provider.capabilities()).mounts
    with pytest.raises(SandboxUnsupported):
        await provider.create(SandboxSpec.model_validate({"mounts": [{"source": "/etc", "target": "/e"}]}))


def test_a_key_comes_from_a_file_or_the_environment(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("secret\n")
    config = RemoteConfig(url="http://h:1", key_file=str(tmp_path / "key"))
    assert config.address().api_key == "secret"
    assert "secret" not in repr(config) + repr(config.address())
    with pytest.raises(ConfigError, match="no-such-file"):
        RemoteConfig(url="http://h:1", key_file=str(tmp_path / "no-such-file")).address()
    with pytest.raises(ConfigError):
        RemoteConfig(url="h:1").address()


async def test_nobody_there_is_told_at_once(unused_tcp_port: int) -> None:
    provider = RemoteProvider(RemoteConfig(url=f"http://127.0.0.1:{unused_tcp_port}"))
    with pytest.raises(SandboxConnectionLost, match=str(unused_tcp_port)):
        await provider.capabilities()
