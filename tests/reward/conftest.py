"""Real sandboxes and test scripts to run in them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from orchard_core import SandboxProvider, VerifierScript, load_provider


@pytest_asyncio.fixture
async def provider(tmp_path: Path) -> AsyncIterator[SandboxProvider]:
    provider = load_provider("local", state_dir=str(tmp_path / "state"))
    yield provider
    await provider.close()


@pytest.fixture
def tests_of(tmp_path: Path) -> Callable[..., VerifierScript]:
    """A directory of tests whose entry script is given."""

    def make(script: str, /, **options: Any) -> VerifierScript:
        directory = tmp_path / "tests-of-the-task"
        directory.mkdir(exist_ok=True)
        (directory / "test.sh").write_bytes(script.encode())
        (directory / "expected.txt").write_text("7\n")
        return VerifierScript(directory=directory, **options)

    return make
