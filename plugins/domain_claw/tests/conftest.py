"""Real sandboxes and the installed package claw-bench."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from orchard_domain_claw.config import ClawBenchConfig
from orchard_domain_claw.source import ClawTask, read_all, tasks_root
from orchard_domain_claw.taskset import ClawBench

from orchard_core import SandboxProvider, load_provider

pytest.importorskip("claw_bench", reason="pip install 'orchard-domain-claw[bench]'")


@pytest_asyncio.fixture
async def provider(tmp_path: Path) -> AsyncIterator[SandboxProvider]:
    provider = load_provider("local", state_dir=str(tmp_path / "state"))
    yield provider
    await provider.close()


@pytest.fixture(scope="session")
def claw_tasks() -> list[ClawTask]:
    tasks, problems = read_all(tasks_root())
    assert problems == []
    return tasks


@pytest.fixture(scope="session")
def all_222() -> ClawBench:
    return ClawBench(ClawBenchConfig())
