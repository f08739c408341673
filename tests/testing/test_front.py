"""What `orchard_core.testing` offers, and what importing it costs."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import orchard_core.testing as front
from orchard_core.testing import (
    FormatSuite,
    HarnessSuite,
    HttpUpstreamSuite,
    ModelSuite,
    RewardSuite,
    SandboxSuite,
    TaskSetSuite,
    TrainerSuite,
    WorkforceSuite,
)

SUITES = (
    FormatSuite,
    HarnessSuite,
    HttpUpstreamSuite,
    ModelSuite,
    RewardSuite,
    SandboxSuite,
    TaskSetSuite,
    TrainerSuite,
    WorkforceSuite,
)


def test_every_public_name_is_there() -> None:
    for name in front.__all__:
        assert getattr(front, name) is not None


def test_type_checkers_see_the_same_names() -> None:
    source = (Path(str(front.__file__)).parent / "_front.py").read_text()
    imports = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom)]
    seen = {alias.asname for node in imports for alias in node.names if alias.asname}
    assert seen == set(front.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no public name 'Nothing'"):
        getattr(front, "Nothing")  # noqa: B009 - a name no checker knows


@pytest.mark.parametrize("module", ["orchard_core.testing", "orchard_core.testing.pytest_plugin"])
def test_importing_it_loads_nothing_heavy(module: str) -> None:
    heavy = ("aiohttp", "pydantic", "uvicorn", "orchard_core.gateway", "orchard_core.sandbox")
    look = f"import sys, {module}; print([name for name in {heavy!r} if name in sys.modules])"
    seen = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)
    assert seen.stdout.strip() == "[]"


@pytest.mark.parametrize("suite", SUITES)
def test_every_contract_test_says_why_it_matters(suite: type) -> None:
    tests = {name: test for name, test in inspect.getmembers(suite) if name.startswith("test_")}
    assert len(tests) >= 6
    for name, test in tests.items():
        doc = inspect.getdoc(test) or ""
        assert doc.endswith("."), name
        assert 30 < len(doc) < 200, name
        assert len(name.split("_")) >= 4, f"{name} is no sentence"
