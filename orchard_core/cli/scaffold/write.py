"""Writing a new plugin: everything or nothing."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from orchard_core.cli.scaffold.blueprint import Blueprint, PluginName
from orchard_core.errors import ConfigError

_SUFFIX = ".jinja"
_PACKAGED = ("__init__.py", "plugin.py")
"""Common files that lie inside the package; the others lie beside it."""


def write_plugin(blueprint: Blueprint, name: PluginName, parent: Path) -> list[Path]:
    """Write the distribution into a new directory below `parent`; gives its files. Raises ConfigError."""
    target = parent / name.distribution
    if target.exists() or target.is_symlink():
        raise ConfigError(f"{target} is there already", hint="choose another name or another --into")
    try:
        parent.mkdir(parents=True, exist_ok=True)
        making = Path(tempfile.mkdtemp(prefix=f".{name.distribution}-", dir=parent))
        try:
            written = [_write(making / path, text) for path, text in _contents(blueprint, name)]
            making.chmod(0o755)
            making.rename(target)
        except BaseException:
            shutil.rmtree(making, ignore_errors=True)
            raise
    except OSError as error:
        raise ConfigError(f"{target} cannot be written: {error}", hint="choose another --into") from error
    return sorted(target / path.relative_to(making) for path in written)


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755 if path.suffix == ".sh" else 0o644)
    return path


def _contents(blueprint: Blueprint, name: PluginName) -> Iterator[tuple[Path, str]]:
    """Each file's place in the distribution, and its text."""
    from jinja2 import Environment, StrictUndefined

    engine = Environment(undefined=StrictUndefined, keep_trailing_newline=True, autoescape=False)  # noqa: S701 - source files, not HTML
    fields = _fields(blueprint, name)
    home = files("orchard_core.cli.scaffold") / "templates"
    for path, template in _templates(home / "common"):
        inside = path.name in _PACKAGED
        yield (
            Path(name.package) / path if inside else path,
            engine.from_string(template.read_text(encoding="utf-8")).render(fields),
        )
    for path, template in _templates(home / blueprint.kind):
        folder = Path("tests") if path.name == "test_contract.py" else Path(name.package)
        yield folder / path, engine.from_string(template.read_text(encoding="utf-8")).render(fields)


def _templates(folder: Traversable, below: Path = Path()) -> Iterator[tuple[Path, Traversable]]:
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir():
            yield from _templates(entry, below / entry.name)
        elif entry.name.endswith(_SUFFIX):
            yield below / entry.name.removesuffix(_SUFFIX), entry


def _fields(blueprint: Blueprint, name: PluginName) -> Mapping[str, object]:
    return {
        "kind": blueprint.kind,
        "module": blueprint.module,
        "hook": blueprint.hook,
        "factory": blueprint.factory or name.class_name,
        "dependencies": blueprint.dependencies,
        "try_it": blueprint.try_it.replace("NAME", name.name),
        "summary": f"The {blueprint.kind} {name.name}",
        "name": name.name,
        "distribution": name.distribution,
        "package": name.package,
        "class_name": name.class_name,
    }
