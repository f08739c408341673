"""Where the program is, and which release."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from orchard_core import ConfigError

_VERSION_S = 10.0


def find_binary(asked: Path | None) -> Path | None:
    """The program on this machine; None: there is none, and the image must bring it. Raises ConfigError."""
    if asked is None:
        found = shutil.which("zeroclaw")
        return None if found is None else Path(found).resolve()
    if not asked.is_file():
        raise ConfigError(
            f"there is no program {asked}", hint="give binary=PATH of a zeroclaw release for this machine"
        )
    return asked.resolve()


def binary_version(binary: Path | None) -> str:
    """Such as `zeroclaw 0.8.4`."""
    if binary is None:
        return "zeroclaw of the image"
    try:
        said = subprocess.run(
            [str(binary), "--version"], capture_output=True, text=True, timeout=_VERSION_S,
            stdin=subprocess.DEVNULL, check=False, env={"HOME": "/nonexistent"},
        ).stdout  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return "zeroclaw of unknown release"
    found = re.search(r"\d+\.\d+\.\d+\S*", said)
    return f"zeroclaw {found[0]}" if found else "zeroclaw of unknown release"
