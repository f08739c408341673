"""`orchard_core` is the front door: complete, lazy, and the same for people and type checkers."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import orchard_core
import orchard_core.errors

FRONT = Path(orchard_core.__file__).with_name("_front.py")
HEAVY = {"pydantic", "aiohttp", "rich", "uvicorn", "jinja2", "yaml", "zstandard", "asyncio"}


def test_every_public_name_can_be_had() -> None:
    for name in orchard_core.__all__:
        assert getattr(orchard_core, name) is not None


def test_type_checkers_see_the_same_names_as_the_run_time() -> None:
    seen = {
        alias.asname or alias.name
        for node in ast.parse(FRONT.read_text()).body
        if isinstance(node, ast.ImportFrom) and node.module not in {"__future__", "orchard_core.errors"}
        for alias in node.names
    }
    assert seen == set(orchard_core.__all__) - {"__version__"}


def test_every_error_is_public() -> None:
    assert orchard_core.NoShell is orchard_core.errors.NoShell


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no public name 'Nothing'"):
        _ = orchard_core.Nothing


def loaded_by(code: str) -> set[str]:
    program = f"import sys\n{code}\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


def test_importing_the_front_imports_nothing_heavy() -> None:
    assert not loaded_by("import orchard_core") & HEAVY


def test_loading_every_plugin_imports_nothing_heavy() -> None:
    assert not loaded_by("from orchard_core.plugins.manager import installed; installed().catalog") & HEAVY
