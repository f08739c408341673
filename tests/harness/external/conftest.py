"""A program of a few lines as a harness, in a sandbox, before a gateway."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

import orchard_core.harness.external
from orchard_core.gateway.scripted import OracleModel
from orchard_core.harness.external.command import CommandConfig, CommandHarness
from orchard_core.plugins.lookup import load_provider
from orchard_core.sandbox.contract import Sandbox
from orchard_core.testing.suites.harness.stage import Played, stage
from orchard_core.types.harness import Limits
from orchard_core.types.sandbox import SandboxSpec
from orchard_core.types.task import Task

sys.path.append(str(Path(orchard_core.harness.external.__file__).with_name("kit")))  # as programs do

Play = Callable[..., Coroutine[Any, Any, Played]]


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    """A real agent; nothing here needs isolation."""
    provider = load_provider("process")
    yield await provider.create(SandboxSpec())
    await provider.close()


@pytest.fixture
def harness_of(tmp_path: Path) -> Callable[..., CommandHarness]:
    """`harness_of(script, **options)`: a shell script as a harness."""

    def made(script: str, **options: object) -> CommandHarness:
        path = tmp_path / "harness.sh"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return CommandHarness(CommandConfig.model_validate({"program": str(path), **options}))

    return made


@pytest.fixture
def play(harness_of: Callable[..., CommandHarness], sandbox: Sandbox) -> Play:
    """`await play(script)` runs it on a task with three turns."""

    async def run(script: str, **options: object) -> Played:
        task = Task(id="one", taskset="tests", instruction="Say 'hello'\nin two lines.", workdir="/workspace")
        async with stage(harness_of(script, **options)) as before:
            return await before.play(task, sandbox, OracleModel(), limits=Limits(turns=3))

    return run
