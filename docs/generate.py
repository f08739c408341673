"""Writes the generated parts of the reference pages; a test holds them up to date.

python docs/generate.py
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields
from enum import Enum
from pathlib import Path
from typing import Any

import typer

from orchard_core import errors
from orchard_core.cli.border import USAGE_ERRORS
from orchard_core.cli.exits import Exit
from orchard_core.rollout.store import entry
from orchard_core.types import events
from orchard_core.types.base import Record
from orchard_core.types.plugin import Descriptor
from orchard_core.types.rollout import Rollout

DOCS = Path(__file__).parent
_REGION = re.compile(r"(<!-- generated: (\w+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def commands() -> str:
    """The help of every built-in command."""
    from orchard_core.cli.main import app

    root: Any = typer.main.get_command(app)
    return "\n".join(
        f"### {' '.join(path)}\n\n```text\n{_help(path, command)}\n```\n"
        for path, command in walk(root, ["orchard"])
    )


def walk(command: Any, path: list[str]) -> Iterator[tuple[list[str], Any]]:
    """A command and all below it, with their paths."""
    yield path, command
    commands_: dict[str, Any] = getattr(command, "commands", {})
    for name, below in commands_.items():
        yield from walk(below, [*path, name])


_WIDTH = {"terminal_width": 100, "max_content_width": 100}


def _help(path: list[str], command: Any) -> str:
    if len(path) == 1:
        return _built_in(command)
    settings = {"help_option_names": ["-h", "--help"], **_WIDTH}
    context = command.make_context(" ".join(path), [], resilient_parsing=True, **settings)
    return _trimmed(command.get_help(context))


def _built_in(root: Any) -> str:
    """The root's help without what plugins add on this machine."""
    listed = set(root.commands)
    text = root.get_help(root.make_context("orchard", [], resilient_parsing=True, **_WIDTH))
    added = tuple(f"  {name} " for name in set(root.commands) - listed)
    return _trimmed("\n".join(line for line in text.splitlines() if not added or not line.startswith(added)))


def _trimmed(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def exits() -> str:
    """The table of exit codes."""
    source = inspect.getsource(Exit)
    rows = re.findall(r'(\w+) = (\d+)\n\s+"""(.*?)"""', source, re.DOTALL)
    lines = [f"| {code} | {name.lower()} | {' '.join(text.split())} |" for name, code, text in rows]
    return "\n".join(["| code | name | meaning |", "| --- | --- | --- |", *lines, ""])


def error_tree() -> str:
    """The table of errors, base classes first."""
    lines = ["| class | base | raised when | exit code |", "| --- | --- | --- | --- |"]
    for kind in _subclasses(errors.OrchardError):
        base = (kind.__base__ or Exception).__name__
        code = Exit.USAGE if issubclass(kind, USAGE_ERRORS) else Exit.FAILED
        lines.append(f"| `{kind.__name__}` | `{base}` | {_doc(kind)} | {code.value} |")
    return "\n".join([*lines, ""])


def _subclasses(kind: type[errors.OrchardError]) -> Iterator[type[errors.OrchardError]]:
    yield kind
    for below in kind.__subclasses__():
        if getattr(errors, below.__name__, None) is below:
            yield from _subclasses(below)


def event_types() -> str:
    """The table of events."""
    kinds = [
        getattr(events, name.strip())
        for name in str(events.Event).replace("orchard_core.types.events.", "").split("|")
    ]
    lines = ["| event | tells | fields |", "| --- | --- | --- |"]
    for kind in kinds:
        names = ", ".join(f"`{name}`" for name in kind.model_fields if name != "type")
        lines.append(f"| `{kind.__name__}` | {_doc(kind)} | {names} |")
    return "\n".join([*lines, ""])


def descriptor() -> str:
    """The table of a descriptor's fields."""
    texts = dict(re.findall(r'^    (\w+): .*\n    """(.*?)"""', inspect.getsource(Descriptor), re.MULTILINE))
    lines = [f"| `{item.name}` | {texts[item.name]} |" for item in fields(Descriptor)]
    return "\n".join(["| field | what it says |", "| --- | --- |", *lines, ""])


def recipe() -> str:
    """The table of a recipe's fields."""
    from orchard_core.cli.recipe import Recipe

    return _recipe(Recipe)


def matrix_recipe() -> str:
    """The same of a matrix."""
    from orchard_core.cli.matrix_recipe import MatrixRecipe

    return _recipe(MatrixRecipe)


def _recipe(kind: type[Record]) -> str:
    lines = []
    for name, field in kind.model_fields.items():
        default = "required" if field.is_required() else _default(field)
        lines.append(f"| `{name}` | {default} | {_words(field.description)} |")
    return "\n".join(["| field | default | what it is |", "| --- | --- | --- |", *lines, ""])


def _default(field: Any) -> str:
    value = field.get_default(call_default_factory=True)
    if value in (None, (), {}, ""):
        return "none"
    if isinstance(value, tuple) and all(isinstance(each, Enum) for each in value):
        return ", ".join(f"`{each.value}`" for each in value)
    if isinstance(value, frozenset):
        return ", ".join(f"`{each}`" for each in sorted(value))
    if isinstance(value, tuple) and len(str(value)) > 80:
        return "a list"
    return "see `--print-config`" if isinstance(value, Record) else f"`{value}`"


def journal() -> str:
    """The lines of a journal and their fields."""
    kinds = [value for value in vars(entry).values() if isinstance(value, type) and "type" in _fields(value)]
    lines = ["| `type` | says | fields |", "| --- | --- | --- |"]
    for kind in kinds:
        names = ", ".join(f"`{name}`" for name in _fields(kind) if name != "type")
        lines.append(f"| `{kind.__name__.lower()}` | {_doc(kind)} | {names} |")
    return "\n".join([*lines, ""])


def rollout() -> str:
    """The fields of a rollout."""
    lines = [f"| `{name}` | {field.description} |" for name, field in Rollout.model_fields.items()]
    return "\n".join(["| field | what it is |", "| --- | --- |", *lines, ""])


def dataset_row() -> str:
    """The fields of a row, and of what stands in it."""
    from orchard_core.types.dataset import AnswerSpan, DatasetRow, RecordedTokens

    return _tables(DatasetRow, RecordedTokens, AnswerSpan)


def manifest() -> str:
    """The fields of a dataset's manifest."""
    from orchard_core.datasets.store import manifest as stored

    return _tables(
        stored.Manifest,
        stored.SplitTotals,
        stored.Shard,
        stored.Made,
        stored.SourceReport,
        stored.FilterReport,
    )


def mix_recipe() -> str:
    """The fields of a recipe of `orchard data mix`."""
    from orchard_core.datasets.mix import filters
    from orchard_core.datasets.mix import recipe as mix

    return _tables(
        mix.MixRecipe, mix.MixSource, mix.MixWhere, mix.MixRows, mix.MixStratum, filters.MixFilters,
        filters.NearDuplicates, mix.MixSplits, mix.MixLeaks, mix.MixShards,
    )  # fmt: skip


def drops() -> str:
    """Why a row is not in a mix."""
    from orchard_core.datasets.mix.filters import Drop

    return _members(Drop)


def leaks() -> str:
    """How a leak is found, and what is asked."""
    from orchard_core.datasets.leaks.report import LeakKind, LeakSettings

    return f"{_members(LeakKind)}\n{_recipe(LeakSettings)}"


def _tables(*kinds: type[Record]) -> str:
    """A table of each record's fields, the first one without a title."""
    parts = [_recipe(kinds[0])]
    parts += [f"**{kind.__name__}**: {_sentence(kind)}\n\n{_recipe(kind)}" for kind in kinds[1:]]
    return "\n".join(parts).replace("see `--print-config`", "see below")


def _words(text: str | None) -> str:
    return " ".join((text or "").split())


def _sentence(kind: type) -> str:
    return re.split(r"(?<=[.])\s", _doc(kind), maxsplit=1)[0]


def _members(kind: type) -> str:
    """The members of an enumeration and what is said of each."""
    rows = re.findall(r'    \w+ = "(\w+)"\n    """(.*?)"""', inspect.getsource(kind), re.DOTALL)
    lines = [f"| `{value}` | {' '.join(text.split())} |" for value, text in rows]
    return "\n".join(["| | |", "| --- | --- |", *lines, ""])


def suites() -> str:
    """Every rule of every contract suite, as `orchard check` links to it."""
    from orchard_core.testing.check.suites import suite_of
    from orchard_core.types.check import Subject, title
    from orchard_core.types.plugin import PluginKind

    parts = []
    for kind in PluginKind:
        suite = suite_of(Subject(kind=kind, spec="x"))
        names = dict.fromkeys(_test_names(suite))
        rules = [f"#### {kind.value}: {title(name)}\n\n{_doc(getattr(suite, name))}\n" for name in names]
        parts.append(f"### {kind.value}\n\n" + "\n".join(rules))
    return "\n".join(parts)


def _test_names(suite: type) -> Iterator[str]:
    """In the order in which they stand in the suite, base classes in their order."""
    for base in suite.__mro__:
        yield from (name for name in vars(base) if name.startswith("test_"))


def _fields(kind: Any) -> dict[str, Any]:
    return getattr(kind, "model_fields", {})


def _doc(kind: Any) -> str:
    return " ".join((kind.__doc__ or "").split())


_WRITERS: dict[str, Callable[[], str]] = {
    "commands": commands,
    "exits": exits,
    "errors": error_tree,
    "events": event_types,
    "descriptor": descriptor,
    "recipe": recipe,
    "matrix_recipe": matrix_recipe,
    "journal": journal,
    "rollout": rollout,
    "dataset_row": dataset_row,
    "manifest": manifest,
    "mix_recipe": mix_recipe,
    "drops": drops,
    "leaks": leaks,
    "suites": suites,
}


def generated(text: str) -> str:
    """The page with its generated parts made anew."""
    return _REGION.sub(lambda found: f"{found[1]}{_WRITERS[found[2]]()}{found[4]}", text)


def main() -> None:
    """Rewrite every page that has changed."""
    for page in sorted(DOCS.rglob("*.md")):
        old = page.read_text(encoding="utf-8")
        new = generated(old)
        if new != old:
            page.write_text(new, encoding="utf-8")
            sys.stderr.write(f"wrote {page}\n")


if __name__ == "__main__":
    main()
