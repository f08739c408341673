"""Whole rollouts under a real CLI."""

from __future__ import annotations

from pathlib import Path

import pytest
from orchard_harness_cli.config import CliConfig
from orchard_harness_cli.harness import Cli

from orchard_core import (
    Gateway,
    HarnessCrashed,
    HarnessResult,
    Limits,
    Outcome,
    SandboxSpec,
    SandboxUnavailable,
    SandboxUnsupported,
    SessionContext,
    StopReason,
    Task,
    load_provider,
    open_sandbox,
    run_rollouts,
)
from orchard_core.testing import FakeModel, FakeProvider, FakeReply, skip_without_isolation


async def test_pi_solves_what_the_oracle_solves(tmp_path: Path) -> None:
    run = run_rollouts("workbench:1", harness="cli:pi", model="oracle", sandbox="local", out=tmp_path / "run")
    try:
        seen = [rollout async for rollout in run]
    except SandboxUnavailable as error:
        skip_without_isolation(error)
    (rollout,) = seen
    assert rollout.outcome is Outcome.COMPLETED
    assert rollout.reward is not None
    assert rollout.reward.score == 1.0
    assert "pi 0.73.1" in rollout.model_dump_json()
    assert len(rollout.trajectory.calls) >= 2


async def test_a_provider_that_shows_nothing_of_the_host_refuses_before_it_starts() -> None:
    mounts = tuple(await Cli(CliConfig(cli="pi")).mounts())
    with pytest.raises(SandboxUnsupported):
        await FakeProvider().create(SandboxSpec(mounts=mounts))


async def test_the_cli_is_shown_read_only() -> None:
    mounts = tuple(await Cli(CliConfig(cli="pi")).mounts())
    try:
        async with open_sandbox("local", mounts=mounts) as sandbox:
            for mount in mounts:
                assert (await sandbox.exec(["test", "-e", mount.target])).ok
                assert not (await sandbox.exec(["touch", f"{mounts[0].target}/x"])).ok
    except SandboxUnavailable as error:
        skip_without_isolation(error)


async def played(*commands: str) -> HarnessResult:
    """A run of pi in which the model gives these commands, one a turn."""
    model = FakeModel([FakeReply.call("bash", command=command) for command in commands])
    harness, provider = Cli(CliConfig(cli="pi")), load_provider("local")
    task = Task(id="t", taskset="tests", instruction="Do it.")
    try:
        async with Gateway() as gateway:
            spec = SandboxSpec(mounts=tuple(await harness.mounts()))
            async with await provider.create(spec) as sandbox:
                session = await gateway.open_session(model, SessionContext(task=task))
                return await harness.run(task, sandbox, session.endpoint, [], Limits())
    except SandboxUnavailable as error:
        skip_without_isolation(error)
    finally:
        await provider.close()


async def test_an_agent_that_kills_its_harness_is_a_crash_of_that() -> None:
    with pytest.raises(HarnessCrashed, match="pi was ended by signal 9"):
        await played("kill -9 $PPID")


async def test_pi_goes_on_when_the_agent_deletes_its_home() -> None:
    result = await played("rm -rf $HOME", "echo still here")
    assert (result.stop, result.turns) == (StopReason.ANSWERED, 3)
