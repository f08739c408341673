"""Real sandboxes, and task directories to put into them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path

import pytest
import pytest_asyncio

from orchard_core import SandboxProvider, load_provider

PASS = "#!/bin/sh\necho 1 > /logs/verifier/reward.txt\n"

MakeTask = Callable[..., Path]


@pytest_asyncio.fixture
async def provider(tmp_path: Path) -> AsyncIterator[SandboxProvider]:
    provider = load_provider("local", state_dir=str(tmp_path / "state"))
    yield provider
    await provider.close()


@pytest.fixture
def make_task(tmp_path: Path) -> MakeTask:
    """Writes a sound task directory, with whatever is given put in its place; None leaves a file out."""

    def make(name: str = "first", /, **changes: str | bytes | None) -> Path:
        root = tmp_path / "tasks" / name
        files: dict[str, str | bytes | None] = {
            "task.toml": "",
            "instruction.md": "Write 7 to answer.txt.\n",
            "tests/test.sh": PASS,
            **_paths(changes),
        }
        for place, content in files.items():
            if content is None:
                continue
            path = root / place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        return root

    return make


def _paths(changes: Mapping[str, str | bytes | None]) -> dict[str, str | bytes | None]:
    known = {"toml": "task.toml", "instruction": "instruction.md", "test": "tests/test.sh"}
    return {known.get(key, key): value for key, value in changes.items()}
