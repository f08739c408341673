"""A private environment for the peers, so that theirs and ours never meet. Gone with its folder."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

PACKAGES = ("swe-rex==1.4.0", "docker==7.2.0")


class LeftOut(Exception):
    """A peer that cannot run here; the message is one line and says how to get it."""


def make_environment(place: Path, packages: Sequence[str] = PACKAGES) -> Path:
    """Its interpreter.

    Raises:
        LeftOut: the packages could not be had.
    """
    python = place / "bin" / "python"
    uv = shutil.which("uv", path=str(Path(sys.executable).parent)) or shutil.which("uv")
    if uv:
        commands = [
            [uv, "venv", "--quiet", "--python", sys.executable, str(place)],
            [uv, "pip", "install", "--quiet", "--python", str(python), *packages],
        ]
    else:
        commands = [
            [sys.executable, "-m", "venv", str(place)],
            [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages],
        ]
    for command in commands:
        run(command, f"to get it: make `pip install {' '.join(packages)}` work here")
    return python


def run(command: list[str], hint: str, env: dict[str, str] | None = None) -> str:
    """What it printed.

    Raises:
        LeftOut: it failed.
    """
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600, env=env)
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip() or "nothing said").splitlines()[-1]
        raise LeftOut(f"{Path(command[0]).name} failed: {said} ({hint})")
    return done.stdout


def times(python: Path, script: str, *arguments: str, env: dict[str, str] | None = None) -> list[float]:
    """Seconds of each round of a peer's script.

    Raises:
        LeftOut: it failed.
    """
    path = Path(__file__).with_name(script)
    printed = run([str(python), str(path), *arguments], f"see bench/peers/{script}", env)
    [line] = [line for line in printed.splitlines() if line.startswith("TAKEN ")]
    taken: list[float] = json.loads(line.removeprefix("TAKEN "))
    return taken
