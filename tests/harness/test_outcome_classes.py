"""What a program does wrong as a harness, through a whole rollout: each way has its own outcome."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from orchard_core import (
    Attribution,
    Gateway,
    Harness,
    HarnessCapabilities,
    HarnessResult,
    InsideLimits,
    InsideProgram,
    Limits,
    ModelEndpoint,
    Outcome,
    Rollout,
    Sandbox,
    SandboxUnavailable,
    StopReason,
    Task,
    Tool,
    load_harness,
    load_provider,
    run_inside,
    run_rollout,
)
from orchard_core.rollout.parts import RolloutParts
from orchard_core.testing import FakeModel, FakeTaskSet, skip_without_isolation

pytestmark = pytest.mark.slow
TASK = Task(id="t", taskset="tests", instruction="Do it.", agent_timeout_s=4)
FORKS = "i=0; while [ $i -lt 40 ]; do (setsid sleep 4000 > /dev/null 2>&1 &); i=$((i+1)); done"
WRONG = {
    "crashes": ("exit 3", Outcome.HARNESS_FAILED, Attribution.HARNESS, "HarnessCrashed"),
    "is killed": ("kill -9 $$", Outcome.HARNESS_FAILED, Attribution.HARNESS, "HarnessCrashed"),
    "forks and crashes": (f"{FORKS}; exit 3", Outcome.HARNESS_FAILED, Attribution.HARNESS, "HarnessCrashed"),
    "hangs": ("sleep 4000", Outcome.TIMED_OUT, Attribution.AGENT, "DeadlineExceeded"),
    "forks and hangs": (f"{FORKS}; sleep 4000", Outcome.TIMED_OUT, Attribution.AGENT, "DeadlineExceeded"),
}
INSIDE_ONLY = {
    "floods": ("yes", Outcome.HARNESS_FAILED, Attribution.HARNESS, "HarnessFlooded"),
    "loses its home": (
        'rm -rf "$HOME"; exit 3',
        Outcome.HARNESS_FAILED,
        Attribution.AGENT,
        "HarnessHomeLost",
    ),
}
"""A program beside the driver may write what it likes, and its home is nobody's to take but its own."""


class Inside(Harness):
    """A shell script inside the sandbox."""

    name = "inside"
    version = "1"
    capabilities = HarnessCapabilities()

    def __init__(self, script: str) -> None:
        self._script = script

    async def run(
        self, task: Task, sandbox: Sandbox, model: ModelEndpoint, tools: Sequence[Tool], limits: Limits
    ) -> HarnessResult:
        program = InsideProgram(argv=("sh", "-c", self._script))
        end = await run_inside(sandbox, program, limits=InsideLimits(output_bytes=1 << 20))
        if fault := end.fault():
            raise fault
        return HarnessResult(stop=StopReason.ANSWERED)


def beside(where: Path, script: str) -> Harness:
    """A shell script beside the driver."""
    path = where / "program.sh"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return load_harness(f"command:{path}")


async def played(harness: Harness) -> Rollout:
    provider = load_provider("local")
    try:
        async with Gateway() as gateway, asyncio.timeout(60):
            parts = RolloutParts(
                taskset=FakeTaskSet([TASK]),
                harness=harness,
                model=FakeModel(),
                provider=provider,
                gateway=gateway,
            )
            return await run_rollout(TASK, parts)
    except SandboxUnavailable as error:
        skip_without_isolation(error)
    finally:
        await provider.close()


@pytest.mark.parametrize("way", [*WRONG, *INSIDE_ONLY])
async def test_inside_the_sandbox(way: str) -> None:
    script, *called = (WRONG | INSIDE_ONLY)[way]
    rollout = await played(Inside(script))
    assert rollout.error is not None
    assert [rollout.outcome, rollout.attribution, rollout.error.kind] == called


@pytest.mark.parametrize("way", WRONG)
async def test_beside_the_driver(way: str, tmp_path: Path) -> None:
    script, *called = WRONG[way]
    rollout = await played(beside(tmp_path, script))
    assert rollout.error is not None
    assert [rollout.outcome, rollout.attribution, rollout.error.kind] == called


@pytest.mark.parametrize(
    ("way", "script"),
    [
        ("floods", "yes | head -c 80000000; exit 3"),
        ("loses its home", 'rm -rf "$HOME" "$TMPDIR" "$PWD"; exit 3'),
    ],
)
async def test_beside_the_driver_they_are_crashes(way: str, script: str, tmp_path: Path) -> None:
    rollout = await played(beside(tmp_path, script))
    assert rollout.error is not None
    assert (rollout.outcome, rollout.error.kind) == (Outcome.HARNESS_FAILED, "HarnessCrashed"), way
