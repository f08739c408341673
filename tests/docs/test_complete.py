"""Nothing that a user can meet is left out of the reference."""

from __future__ import annotations

import importlib.util
import inspect
import re
from types import ModuleType

import pytest

import orchard_core
from orchard_core import errors
from orchard_core.plugins import hookspecs
from orchard_core.types.rollout import Outcome

from .pages import ROOT, page_id

REFERENCE = ROOT / "docs" / "reference"
SOURCES = [
    path
    for folder in ("orchard_core", "plugins", "agent")
    for path in (ROOT / folder).rglob("*")
    if path.suffix in {".py", ".go"} and "tests" not in path.parts and "testing" not in path.parts
]


def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("page", sorted(REFERENCE.glob("*.md")), ids=page_id)
def test_the_generated_parts_are_up_to_date(page: object) -> None:
    text = page.read_text(encoding="utf-8")  # type: ignore[attr-defined]
    assert generator().generated(text) == text, "run: python docs/generate.py"


def test_every_hook_is_documented() -> None:
    text = (REFERENCE / "hooks.md").read_text(encoding="utf-8")
    hooks = [
        name for name, _ in inspect.getmembers(hookspecs, inspect.isfunction) if name.startswith("orchard_")
    ]
    assert len(hooks) >= 8
    assert [name for name in hooks if f"`{name}(" not in text] == []


def test_every_error_is_documented_and_public() -> None:
    text = (REFERENCE / "errors.md").read_text(encoding="utf-8")
    kinds = [
        name
        for name, kind in inspect.getmembers(errors, inspect.isclass)
        if issubclass(kind, errors.OrchardError)
    ]
    assert [name for name in kinds if f"`{name}`" not in text] == []
    assert [name for name in kinds if getattr(orchard_core, name) is not getattr(errors, name)] == []


def test_every_setting_in_the_sources_is_documented() -> None:
    text = (REFERENCE / "settings.md").read_text(encoding="utf-8")
    used: dict[str, str] = {}
    for path in SOURCES:
        for name in re.findall(
            r"\bORCHARD_[A-Z][A-Z_]*[A-Z]\b", path.read_text(encoding="utf-8", errors="replace")
        ):
            used.setdefault(name, page_id(path))
    assert "ORCHARD_PLUGINS" in used, "the search finds something"
    assert {name: where for name, where in used.items() if f"`{name}`" not in text} == {}


def test_every_setting_that_is_documented_exists() -> None:
    text = (REFERENCE / "settings.md").read_text(encoding="utf-8")
    sources = "".join(path.read_text(encoding="utf-8", errors="replace") for path in SOURCES)
    assert [name for name in set(re.findall(r"`(ORCHARD_[A-Z_]+)`", text)) if name not in sources] == []


def test_every_command_is_documented() -> None:
    import typer

    from orchard_core.cli.main import app

    text = (REFERENCE / "cli.md").read_text(encoding="utf-8")
    paths = [" ".join(path) for path, _ in generator().walk(typer.main.get_command(app), ["orchard"])]
    assert {"orchard run", "orchard tasks show", "orchard runs reap"} <= set(paths)
    assert [path for path in paths if f"### {path}\n" not in text] == []


def test_every_page_is_linked_from_the_readme() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    pages = [page_id(path) for path in sorted((ROOT / "docs").rglob("*.md"))]
    assert "docs/quickstart.md" in pages
    assert [page for page in pages if f"]({page})" not in text] == []


def test_the_readme_names_everything_that_comes_with_it() -> None:
    from orchard_core.plugins.lookup import catalog

    text = (ROOT / "README.md").read_text(encoding="utf-8")
    ours = [offer for offer in catalog().offers.values() if offer.source.distribution.startswith("orchard-")]
    assert len(ours) >= 9
    assert [offer.descriptor.name for offer in ours if f"`{offer.descriptor.name}" not in text] == []


def test_every_outcome_is_explained() -> None:
    text = (ROOT / "docs" / "concepts.md").read_text(encoding="utf-8")
    assert [outcome for outcome in Outcome if f"| `{outcome.value}` |" not in text] == []
