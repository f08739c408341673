"""Whole rollouts under a real CLI."""

from __future__ import annotations

from pathlib import Path

import pytest
from orchard_harness_cli.config import CliConfig
from orchard_harness_cli.harness import Cli

from orchard_core import (
    Outcome,
    SandboxSpec,
    SandboxUnavailable,
    SandboxUnsupported,
    open_sandbox,
    run_rollouts,
)
from orchard_core.testing import FakeProvider, skip_without_isolation


async def test_pi_solves_what_the_oracle_solves(tmp_path: Path) -> None:
    run = run_rollouts("workbench:1", harness="cli:pi", model="oracle", sandbox="local", out=tmp_path / "run")
    try:
        seen = [rollout async for rollout in run]
    except SandboxUnavailable as error:
        skip_without_isolation(error)
    (rollout,) = seen
    assert (rollout.outcome, rollout.reward.score) == (Outcome.COMPLETED, 1.0)
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
