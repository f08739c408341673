"""Real tasks, real sandboxes, a real gateway; and a driver that is killed again and again."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
from collections import Counter
from pathlib import Path

import pytest

from orchard_core import Attribution, Outcome, SandboxUnsupported, Task
from orchard_core.gateway.scripted import OracleConfig, OracleModel
from orchard_core.gateway.server import Gateway
from orchard_core.plugins.lookup import load_provider
from orchard_core.rollout.front import run_rollouts
from orchard_core.rollout.grading import regrade
from orchard_core.rollout.parts import RolloutParts
from orchard_core.rollout.settings import RolloutSettings
from orchard_core.rollout.store.blobs import BlobWriter
from orchard_core.rollout.store.run import open_run
from orchard_core.tasks.workbench.taskset import Workbench, WorkbenchConfig
from orchard_core.testing import FakeHarness, FakeModel, FakeReply, FakeTaskSet

DRIVER = Path(__file__).with_name("driver.py")
PLANNED = 24
KILLS = 20


async def test_real_tasks_run_are_scored_and_can_be_graded_again(tmp_path: Path, gateway: Gateway) -> None:
    taskset = Workbench(WorkbenchConfig(count=4))
    provider = load_provider("local")
    model = OracleModel(OracleConfig())
    try:
        rollouts = [
            rollout
            async for rollout in run_rollouts(
                taskset,
                harness=FakeHarness(),
                model=model,
                sandbox=provider,
                gateway=gateway,
                out=tmp_path / "run",
            )
        ]
        assert [(rollout.outcome, rollout.score) for rollout in rollouts] == [(Outcome.COMPLETED, 1.0)] * 4
        assert not any(rollout.reward.same_sandbox for rollout in rollouts if rollout.reward)
        run = open_run(tmp_path / "run")
        parts = RolloutParts(
            taskset=taskset,
            harness=FakeHarness(),
            model=model,
            provider=provider,
            gateway=gateway,
            blobs=BlobWriter(run.root / "blobs"),
        )
        again = await regrade(next(run.rollouts()), parts)
        assert again.score == 1.0
    finally:
        await provider.close()


async def test_an_agent_that_kills_its_real_sandbox_is_named(tmp_path: Path, gateway: Gateway) -> None:
    fatal = FakeModel([FakeReply.call("bash", command="kill -9 $PPID; sleep 5")])
    here = Task(id="here", taskset="fake", instruction="Go.", workdir=str(tmp_path))
    provider = load_provider("process")
    try:
        [rollout] = [
            rollout
            async for rollout in run_rollouts(
                FakeTaskSet([here]),
                harness=FakeHarness(),
                model=fatal,
                sandbox=provider,
                gateway=gateway,
                settings=RolloutSettings(allow_shared_paths=True),
                out=tmp_path / "run",
            )
        ]
    finally:
        await provider.close()
    assert (rollout.outcome, rollout.attribution) == (Outcome.SANDBOX_FAILED, Attribution.AGENT)
    assert rollout.score is None
    assert rollout.tries == 1


async def test_rollouts_that_would_share_the_hosts_are_refused(tmp_path: Path, gateway: Gateway) -> None:
    provider = load_provider("process")
    running = run_rollouts(
        FakeTaskSet.of(2),
        harness=FakeHarness(),
        model=FakeModel(["done"]),
        sandbox=provider,
        gateway=gateway,
        out=tmp_path / "run",
    )
    with pytest.raises(SandboxUnsupported, match="the host's own") as caught:
        await anext(running)
    assert "--sandbox local" in caught.value.hint


@pytest.mark.slow
async def test_twenty_kills_of_the_driver_lose_no_reported_rollout(tmp_path: Path) -> None:
    draw = random.Random(20)
    kills, number = 0, 0
    while kills < KILLS:
        root, reported = tmp_path / f"run{number}", Counter[str]()
        number += 1
        while await _life(root, reported, draw):
            kills += 1
            if reported:
                stored = {entry.id for entry in open_run(root).finished()}
                assert reported.keys() <= stored
        run = open_run(root)
        assert len(run.planned()) == PLANNED
        assert run.missing() == []
        assert run.damaged() == []
        assert Counter(rollout.id for rollout in run.rollouts()) == Counter(item.id for item in run.planned())
        assert {rollout.score for rollout in run.rollouts()} == {1.0}
        assert max(reported.values()) == 1


async def _life(root: Path, reported: Counter[str], draw: random.Random) -> bool:
    """One driver, killed at a random moment after a few reports. True when it was killed, False when it
    was done before that."""
    driver = await asyncio.create_subprocess_exec(
        sys.executable,
        str(DRIVER),
        str(root),
        "local",
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    assert driver.stdout is not None
    killer: asyncio.Task[None] | None = None
    async for line in driver.stdout:
        if line == b"started\n":
            killer = asyncio.create_task(_kill(driver, draw.uniform(0.0, 2.0)))
        elif line.endswith(b"\n"):
            reported[line.strip().decode()] += 1
    code = await driver.wait()
    if killer is not None:
        killer.cancel()
    assert code in {0, -signal.SIGKILL}
    return code != 0


async def _kill(driver: asyncio.subprocess.Process, delay_s: float) -> None:
    await asyncio.sleep(delay_s)
    os.kill(driver.pid, signal.SIGKILL)
