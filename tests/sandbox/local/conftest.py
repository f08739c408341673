"""A provider with its own state directory, so that no test meets another's leftovers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from orchard_core.sandbox.agent_sandbox import AgentSandbox
from orchard_core.sandbox.local.config import LocalConfig
from orchard_core.sandbox.local.provider import LocalProvider
from orchard_core.types.sandbox import SandboxSpec


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """Where the provider keeps its files."""
    return tmp_path / "state"


@pytest_asyncio.fixture
async def provider(state: Path) -> AsyncIterator[LocalProvider]:
    """A provider of this machine."""
    made = LocalProvider(LocalConfig(state_dir=str(state)))
    yield made
    await made.close()


@pytest_asyncio.fixture
async def sandbox(provider: LocalProvider) -> AsyncIterator[AgentSandbox]:
    """A sandbox with nothing asked for."""
    async with await provider.create(SandboxSpec()) as made:
        yield made


@pytest.fixture
def pids_of() -> Callable[[str], list[int]]:
    """Processes of this host, zombies left out, whose command line holds a word such as a sandbox's id."""

    def find(word: str) -> list[int]:
        found = []
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and word.encode() in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
        return found

    return find
