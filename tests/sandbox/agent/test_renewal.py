"""An agent that becomes a new one: everything inside is dead, the old token with it, the files stay."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from orchard_core.errors import AgentRefused, SandboxError
from orchard_core.sandbox.agent import AgentClient
from orchard_core.sandbox.agent.renewal import renew_agent

from .conftest import Launch

NEW = "n" * 32


async def test_a_new_agent_knows_the_new_token_alone(launch: Launch) -> None:
    agent = await launch()
    renewed = await renew_agent(agent.endpoint, NEW)
    try:
        assert (await renewed.health()).running == 0
        with pytest.raises(AgentRefused):
            await agent.health()
    finally:
        await renewed.shutdown()
        await renewed.close()


async def test_what_ran_is_dead_and_what_was_written_is_there(launch: Launch, tmp_path: Path) -> None:
    agent = await launch()
    command = "trap '' TERM HUP INT; echo $$ > pid; while :; do sleep 1; done"
    await agent.start(["setsid", "sh", "-c", command], cwd=str(tmp_path))
    while not (tmp_path / "pid").is_file() or not (tmp_path / "pid").read_text().strip():
        await agent.exec("sleep 0.05")
    pid = (tmp_path / "pid").read_text().strip()
    renewed = await renew_agent(agent.endpoint, NEW)
    try:
        alive = await renewed.exec(f"kill -0 {pid} && ! grep -q '^State:.Z' /proc/{pid}/status")
        assert not alive.ok
        assert (await renewed.read_bytes(str(tmp_path / "pid"))).strip() == pid.encode()
        with pytest.raises(SandboxError):
            await renewed.attach("a-run-of-the-old-one")
    finally:
        await renewed.shutdown()
        await renewed.close()


async def test_it_may_be_done_again_and_again_as_the_first_process(
    launch: Launch, confine: Callable[..., list[str]]
) -> None:
    agent: AgentClient = await launch(prefix=confine(), agent="/agent", directory="/sockets")
    endpoint = agent.endpoint
    for number in range(3):
        renewed = await renew_agent(endpoint, f"{number}" * 32)
        endpoint = renewed.endpoint
        assert (await renewed.health()).pid == 1
        assert (await renewed.exec("echo on")).stdout == b"on\n"
        await renewed.close()
    last = AgentClient(endpoint)
    await last.shutdown()
    await last.close()


async def test_the_new_token_is_nowhere_to_be_seen(launch: Launch) -> None:
    agent = await launch()
    renewed = await renew_agent(agent.endpoint, NEW)
    try:
        look = (
            "cat /proc/$PPID/environ /proc/$PPID/cmdline /proc/$$/environ | tr '\\0' '\\n'; ls -l /proc/$$/fd"
        )
        assert NEW.encode() not in (await renewed.exec(look)).stdout
    finally:
        await renewed.shutdown()
        await renewed.close()


async def test_a_token_that_is_none_changes_nothing(
    launch: Launch, processes: list[subprocess.Popen[bytes]]
) -> None:
    agent = await launch()
    with pytest.raises(SandboxError, match="16 to 4096"):
        await renew_agent(agent.endpoint, "short")
    assert (await agent.exec("echo on")).stdout == b"on\n"
    assert processes[0].poll() is None


async def test_a_minted_token_may_not_start_an_agent_anew(launch: Launch) -> None:
    agent = await launch()
    with pytest.raises(AgentRefused):
        await renew_agent(await agent.mint_token(), NEW)
    assert (await agent.exec("echo on")).stdout == b"on\n"
