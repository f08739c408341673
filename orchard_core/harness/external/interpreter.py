"""A Python environment for a harness whose package needs an interpreter, or dependencies, of its own."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import re
import shutil
import subprocess
from pathlib import Path

from orchard_core.errors import ConfigError
from orchard_core.harness.cache import making, program_cache
from orchard_core.sandbox.local.removal import remove_tree

_LOG = logging.getLogger("orchard.harness")
_WORDS = 1500
_NUMBER = re.compile(r"\d+")


async def managed_python(name: str, requirements: Path, *, python: str, size: str, variable: str) -> Path:
    """The interpreter that an environment variable names; else that of an environment made for the purpose,
    which holds exactly what a file of pinned requirements lists.

    uv makes it the first time, below the user's cache directory, which takes minutes. Several processes may
    ask together: one makes it. What a killed one left is gone on with. `size` is told to people. Raises
    ConfigError, in uv's words, when it cannot be made.
    """
    named = os.environ.get(variable)
    if not named:
        return await asyncio.to_thread(_managed, name, requirements, python, size)
    found = shutil.which(named)
    if found is None:
        raise ConfigError(
            f"{variable} is {named!r}, which is no program",
            hint=f"name a Python {python} that has {name}, or unset it to have one made",
        )
    return Path(found)


def _managed(name: str, requirements: Path, python: str, size: str) -> Path:
    digest = hashlib.sha256(python.encode() + requirements.read_bytes()).hexdigest()[:16]
    place = program_cache() / f"{name}-{digest}"
    interpreter = place / "bin" / "python"
    if not interpreter.exists():
        with making(place) as lock:
            if not interpreter.exists():
                remove_tree(place)  # one whose own base is gone
                _LOG.warning("making %s's Python environment in %s, once; %s to fetch", name, place, size)
                _make(place, requirements, python, lock)
                _LOG.warning("%s's Python environment is ready", name)
    return interpreter


def _make(place: Path, requirements: Path, python: str, lock: int) -> None:
    """Under another name until it is whole; uv goes on where it was interrupted."""
    unfinished = place.with_name(f"{place.name}.unfinished")
    base = _of_pyenv(python) or python
    _uv(lock, "venv", "--quiet", "--allow-existing", "--relocatable", "--python", base, str(unfinished))
    interpreter = str(unfinished / "bin" / "python")
    _uv(lock, "pip", "sync", "--quiet", "--compile-bytecode", "--python", interpreter, str(requirements))
    unfinished.rename(place)


def _of_pyenv(version: str) -> str | None:
    """pyenv's newest of this version, which uv finds only when pyenv's own settings select it."""
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    try:
        found = [
            path
            for path in root.glob(f"versions/{version}.*/bin/python{version}")
            if os.access(path, os.X_OK)
        ]
    except OSError:  # another user's, or no path at all: uv looks elsewhere
        return None
    return str(max(found, key=lambda path: [int(n) for n in _NUMBER.findall(str(path))])) if found else None


def _uv(lock: int, *arguments: str) -> None:
    """Run uv, which holds the lock too: when we are killed, the next one waits for its end."""
    try:
        from uv import find_uv_bin
    except ImportError as error:
        raise ConfigError("making a Python environment needs uv", hint="pip install uv") from error
    environment = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    done = subprocess.run(
        [find_uv_bin(), *arguments],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        pass_fds=(lock,),
        check=False,
    )
    if done.returncode:
        raise ConfigError(
            f"uv {' '.join(arguments[:2])} failed: {done.stderr.strip()[-_WORDS:]}",
            hint="it needs a package index, or an interpreter of your own: see the harness's README",
        )
