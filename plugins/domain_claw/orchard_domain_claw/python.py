"""The Python packages that verifiers, and some solutions, need inside a sandbox.

The interpreter is the sandbox's own, because the tasks are about its files and programs; only packages come
from here. They are pure Python or do without their extension modules, so the interpreter inside may be
another version than ours, from 3.10 on; with an older one nothing is judged, and no score is made up. Each
package is mounted by itself; nothing else of this environment can be seen.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path

from orchard_core import Mount, PluginNotInstalled

PLACE = "/opt/orchard-claw/python"
"""Where the packages are seen inside; it is on PYTHONPATH."""
PACKAGES = (
    *("pytest", "_pytest", "py", "pluggy", "iniconfig", "packaging", "pygments", "yaml"),
    *("requests", "urllib3", "idna", "certifi", "charset_normalizer"),
)
"""pytest, PyYAML and requests with what they import; a package or a module of one file each."""
DISTRIBUTIONS = ("pytest", "pluggy", "iniconfig", "packaging", "Pygments", "PyYAML")
"""Whose metadata pytest looks up."""
PATH = "/opt/orchard-claw/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Search path inside: ours first."""
ENV = {"PATH": PATH, "PYTHONPATH": PLACE, "PYTHONDONTWRITEBYTECODE": "1"}
"""Makes the interpreter inside find the packages."""


def mounts(scratch: Path) -> tuple[Mount, ...]:
    """A read-only mount for each package and its metadata, and one of a directory made in `scratch`, with
    the command `python`: 64 solutions call it, and Debian's own Python does not bring it.

    Raises PluginNotInstalled when a package is missing.
    """
    sources = [*(_source(name) for name in PACKAGES), *(_metadata(name) for name in DISTRIBUTIONS)]
    packages = (Mount(source=str(source), target=f"{PLACE}/{source.name}") for source in sources)
    return (*packages, Mount(source=str(_commands(scratch)), target=PATH.split(":", 1)[0]))


def _commands(scratch: Path) -> Path:
    directory = scratch / ".bin"
    directory.mkdir()
    python = directory / "python"
    python.write_text('#!/bin/sh\nexec python3 "$@"\n')
    python.chmod(0o755)
    return directory


def _source(name: str) -> Path:
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        raise _missing(name)
    origin = Path(spec.origin)
    return origin.parent if origin.name == "__init__.py" else origin


def _metadata(name: str) -> Path:
    try:
        package = distribution(name)
    except PackageNotFoundError:
        raise _missing(name) from None
    for file in package.files or ():
        if file.name == "METADATA":
            return Path(str(package.locate_file(file))).parent
    raise _missing(name)


def _missing(name: str) -> PluginNotInstalled:
    return PluginNotInstalled(
        f"claw-bench's verifiers need the Python package {name}, which is not installed",
        hint="pip install 'orchard-domain-claw[bench]'",
    )
