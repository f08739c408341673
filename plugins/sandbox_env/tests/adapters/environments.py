"""Other people's frameworks, each in an environment of its own: made once, kept in the user's cache."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from orchard_core import ConfigError, managed_python

from ..service.running import GENEROUS_S, Running

HERE = Path(__file__).parent
PLUGIN = HERE.parents[1]
PROGRAMS = HERE / "programs"


@dataclass(frozen=True, kw_only=True)
class Framework:
    """One framework's interpreter, which sees the working tree and one service."""

    python: Path
    """Of its environment."""
    service: Running
    """What SANDBOX_BASE_URL names."""
    scratch: Path
    """Home, working directory and output of what runs."""

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Run the interpreter with these arguments in a session of its own."""
        return subprocess.Popen(
            [str(self.python), *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=self.scratch,
            env=self._environment(),
            start_new_session=True,
        )

    def run(self, *arguments: str) -> str:
        """What it said. Fails when it does."""
        running = self.start(*arguments)
        try:
            said, _ = running.communicate(timeout=5 * GENEROUS_S)
        finally:
            end(running)
        assert running.returncode == 0, said
        return said

    def tell(self, program: str, *arguments: str) -> dict[str, Any]:
        """The JSON of the last line that a program of ours said."""
        told: dict[str, Any] = json.loads(self.run(str(PROGRAMS / program), *arguments).splitlines()[-1])
        return told

    def standing(self) -> list[str]:
        """Ids of the service's sandboxes."""
        with self.service.client() as client:
            return [one["id"] for one in client.get("/v2/sandboxes").raise_for_status().json()["sandboxes"]]

    def until_standing(self, count: int) -> list[str]:
        """The ids, when there are so many; or as they are after a generous time."""
        deadline = time.monotonic() + GENEROUS_S
        while len(found := self.standing()) != count and time.monotonic() < deadline:
            time.sleep(0.05)
        return found

    def _environment(self) -> dict[str, str]:
        paths = (PLUGIN.parents[1], PLUGIN, installed(self.scratch))
        return {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.pathsep.join(map(str, paths)),
            "HOME": str(self.scratch),
            "SANDBOX_BASE_URL": self.service.url,
            "HF_HUB_OFFLINE": "1",
        }


def end(running: subprocess.Popen[str]) -> None:
    """Its whole session, if any of it still runs."""
    if running.poll() is None:
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()


def python_with(name: str) -> Path:
    """The interpreter of an environment that holds what `NAME.txt` pins; skips where it cannot be made."""
    try:
        return asyncio.run(
            managed_python(
                f"adapters-{name}",
                HERE / f"{name}.txt",
                python="3.12",
                size="100 MB",
                variable=f"ORCHARD_TEST_{name.upper()}_ADAPTER_PYTHON",
            )
        )
    except ConfigError as error:
        pytest.skip(f"{name} is tried with its own package, which needs an index or a cache of it: {error}")


def installed(scratch: Path) -> Path:
    """A directory that tells Python of the plugin's entry points, as installing it would."""
    told = tomllib.loads((PLUGIN / "pyproject.toml").read_text())["project"]
    info = scratch / "installed" / f"orchard_env-{told['version']}.dist-info"
    if not info.exists():
        info.mkdir(parents=True)
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: orchard-env\nVersion: {told['version']}\n"
        )
        groups = told["entry-points"].items()
        lines = [
            f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in points.items()) for group, points in groups
        ]
        (info / "entry_points.txt").write_text("\n".join(lines))
    return info.parent
