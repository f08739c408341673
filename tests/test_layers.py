"""Imports go down only, as the architecture page draws it; production never imports the testing kit."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import orchard_core

ROOT = Path(__file__).resolve().parents[1]
CORE = ROOT / "orchard_core"

LAYERS = (
    {"errors"},
    {"types"},
    {"sandbox", "harness", "gateway", "reward", "trainer", "tasks", "formats"},
    {"plugins"},
    {"rollout"},
    {"evals", "datasets"},
    {"viewer"},
    {"cli"},
)
RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}
HOME = orchard_core._HOME
"""Where each public name lives, so that the lazy front is no way around the layers."""
FRONT = {"__init__", "_front"}
"""The public front re-exports from every layer, lazily."""
BY_NAME_ONLY = {("plugins", "builtin")}
"""Registers built-ins of every layer by dotted name, never by import."""


def modules(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*.py") if "bin" not in path.parts)


def imports(path: Path) -> Iterator[str]:
    """Absolute names of every module imported anywhere in the file, type-checking blocks included."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} uses a relative import"
            yield node.module or ""
            if node.module == "orchard_core":
                yield from (HOME.get(alias.name, f"orchard_core.{alias.name}") for alias in node.names)


def part(module: str) -> str:
    return [*module.split("."), ""][1]


@pytest.mark.parametrize(
    "path", [p for p in modules(CORE) if "testing" not in p.parts], ids=lambda p: str(p.relative_to(ROOT))
)
def test_a_core_module_imports_downwards_only(path: Path) -> None:
    own = path.relative_to(CORE).parts[0].removesuffix(".py")
    for module in imports(path):
        if not module.startswith("orchard_core.") or own in FRONT:
            continue
        target = part(module)
        assert target != "testing", f"{path}: production imports {module}"
        if target in RANK:
            assert RANK[target] <= RANK[own], f"{own} (layer {RANK[own]}) imports {module}"


def test_every_folder_of_the_core_has_a_layer() -> None:
    folders = {path.name for path in CORE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert folders <= {*RANK, "testing"}


PLUGINS = sorted(path for path in (ROOT / "plugins").iterdir() if (path / "pyproject.toml").exists())
PACKAGES = {plugin: next(plugin.glob("orchard_*")).name for plugin in PLUGINS}


@pytest.mark.parametrize("plugin", PLUGINS, ids=lambda p: p.name)
def test_a_plugin_imports_public_names_and_no_other_plugin(plugin: Path) -> None:
    others = set(PACKAGES.values()) - {PACKAGES[plugin]}
    for path in modules(plugin / PACKAGES[plugin]):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module:
                top = node.module.split(".")[0]
                assert top not in others, f"{path} imports another plugin"
                if top == "orchard_core":
                    assert node.module == "orchard_core", f"{path}: not from {node.module}"
                    for alias in node.names:
                        assert alias.name in orchard_core.__all__ or _is_error(alias.name), alias.name
            elif isinstance(node, ast.Import):
                assert not any(alias.name.startswith("orchard_core.") for alias in node.names), path


def _is_error(name: str) -> bool:
    import orchard_core.errors

    return hasattr(orchard_core.errors, name)
