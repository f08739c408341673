"""`orchard_core` is the front door: complete, lazy, and the same for people and type checkers."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
import textwrap
from dataclasses import fields, is_dataclass
from itertools import pairwise
from pathlib import Path

import pytest
from pydantic import BaseModel

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


def public_types() -> list[type]:
    """What carries data: records and dataclasses, not contracts, services or errors."""
    values = [getattr(orchard_core, name) for name in orchard_core.__all__]
    return [
        value for value in values if isinstance(value, type) and (is_record(value) or is_dataclass(value))
    ]


def is_record(kind: type) -> bool:
    return issubclass(kind, BaseModel)


def lines_of_fields(kind: type) -> dict[str, str]:
    """The string under each field, in the class and the classes it builds on."""
    found: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if is_dataclass(base) or (is_record(base) and base is not BaseModel):
            found |= lines_of_class(base)
    return found


def lines_of_class(kind: type) -> dict[str, str]:
    tree = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
    assert isinstance(tree, ast.ClassDef)
    return {
        field.target.id: line.value.value.strip()
        for field, line in pairwise(tree.body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(line, ast.Expr)
        and isinstance(line.value, ast.Constant)
        and isinstance(line.value.value, str)
    }


def test_there_are_public_types_of_both_sorts() -> None:
    assert {is_record(kind) for kind in public_types()} == {True, False}
    assert {orchard_core.Rollout, orchard_core.ExecResult} <= set(public_types())


@pytest.mark.parametrize("kind", public_types(), ids=lambda kind: kind.__name__)
def test_every_public_type_is_frozen_and_keyword_only_and_every_field_has_its_line(kind: type) -> None:
    if issubclass(kind, BaseModel):
        assert kind.model_config.get("frozen") is True
        names = set(kind.model_fields)
    else:
        assert kind.__dataclass_params__.frozen  # type: ignore[attr-defined]
        assert [field.name for field in fields(kind) if field.init and not field.kw_only] == []  # type: ignore[arg-type]
        names = {field.name for field in fields(kind) if not field.name.startswith("_")}  # type: ignore[arg-type]
    lines = lines_of_fields(kind)
    assert [name for name in sorted(names) if not lines.get(name)] == []
