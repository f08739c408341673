"""The Python packages that verifiers, and some solutions, need inside a sandbox.

They are pure Python, so the interpreter inside may be another one than ours: PyYAML does without its
extension module, and pytest supports 3.10 and newer. Each package is mounted by itself; nothing else of this
environment can be seen.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from orchard_core import FileInput, Mount, PluginNotInstalled

PLACE = "/opt/orchard-claw/python"
"""Where the packages are seen inside; it is on PYTHONPATH."""
PACKAGES = ("pytest", "_pytest", "py", "pluggy", "iniconfig", "packaging", "pygments", "yaml")
"""pytest with what it imports, and PyYAML; a package or a module of one file each."""
PYTHON = FileInput(path="/usr/local/bin/python", content=b'#!/bin/sh\nexec python3 "$@"\n', mode=0o755)
"""64 solutions call `python`, which Debian's own Python does not bring."""


def mounts() -> tuple[Mount, ...]:
    """One read-only mount for each package. Raises PluginNotInstalled when one is missing."""
    sources = [_source(name) for name in PACKAGES]
    return tuple(Mount(source=str(source), target=f"{PLACE}/{source.name}") for source in sources)


def _source(name: str) -> Path:
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        raise PluginNotInstalled(
            f"claw-bench's verifiers need the Python package {name}, which is not installed",
            hint="pip install 'orchard-domain-claw[bench]'",
        )
    origin = Path(spec.origin)
    return origin.parent if origin.name == "__init__.py" else origin
