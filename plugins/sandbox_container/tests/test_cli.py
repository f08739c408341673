"""`orchard containers` on a real engine."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from orchard_sandbox_container.config import ContainerConfig
from orchard_sandbox_container.provider import ContainerProvider

from orchard_core import SandboxSpec

if TYPE_CHECKING:
    from .conftest import Podman


async def orchard(*words: str) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("orchard")), "containers", *words]
    return await asyncio.to_thread(
        subprocess.run, command, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.slow
async def test_what_stands_is_listed_and_left_alone(podman: Podman, tmp_path: Path) -> None:
    provider = ContainerProvider(ContainerConfig(engine=podman.socket, state_dir=str(tmp_path)))
    spec = SandboxSpec.model_validate({"image": "oci:busybox", "labels": {"run": "first\x1b[2J"}})
    chosen = ("--engine", podman.socket, "--state-dir", str(tmp_path))
    async with await provider.create(spec) as sandbox:
        (row,) = json.loads((await orchard("list", *chosen, "--json")).stdout)
        assert (row["id"], row["image"]) == (sandbox.id, "oci:busybox")
        assert sandbox.id in (await orchard("list", *chosen)).stdout
        done = await orchard("reap", *chosen, "--json")
        assert json.loads(done.stdout) == {"sandboxes": [], "snapshots": 0, "directories": 0, "left": []}
        assert await sandbox.alive()
    await provider.close()


@pytest.mark.slow
async def test_an_image_is_built_ahead(podman: Podman, tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text("FROM busybox\nENV AHEAD=1\n")
    done = await orchard("pull", f"build:{tmp_path}", "--engine", podman.socket, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["id"]


async def test_a_failure_is_one_message_with_a_hint(tmp_path: Path) -> None:
    done = await orchard("list", "--engine", f"unix://{tmp_path}/none")
    assert done.returncode != 0
    assert "cannot be reached" in done.stderr
    assert "hint" in done.stderr
    assert "Traceback" not in done.stderr
