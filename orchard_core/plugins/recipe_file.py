"""Recipes in YAML files, whatever they are recipes of."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from orchard_core.errors import ConfigError
from orchard_core.plugins.invalid import wrong
from orchard_core.types.base import Record

R = TypeVar("R", bound=Record)


def checked(kind: type[R], fields: Mapping[str, Any], *, where: str, command: str) -> R:
    """The recipe of such fields; `where` they stand, and `command` is what runs it.

    Raises ConfigError that names each wrong field, with the closest right name.
    """
    try:
        return kind.model_validate(fields)
    except ValidationError as error:
        raise ConfigError(
            f"{where}: {wrong(error, kind, noun='field')}",
            hint=f"{command} --help lists the flags; --print-config shows a whole recipe",
        ) from error


def recipe_fields(path: Path, kind: type[Record]) -> dict[str, Any]:
    """The fields of a YAML recipe of that kind, not yet checked.

    Raises ConfigError with the line that is wrong.
    """
    import yaml

    if path.exists() and not path.is_file():  # a pipe would be waited for
        raise ConfigError(f"recipe {path} is not a file", hint="give the path of a YAML file")
    try:
        text = path.read_text(encoding="utf-8")
        fields = yaml.safe_load(text)
        doubled = _doubled(yaml.compose(text, Loader=yaml.SafeLoader))
    except OSError as error:
        raise ConfigError(f"recipe {path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"recipe {path} cannot be read: {error}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # such as the date 2020-99-99
        raise ConfigError(f"recipe {path} is not YAML: {error}") from error
    if not isinstance(fields, dict):
        raise ConfigError(
            f"recipe {path} is not a mapping of fields",
            hint=f"its fields are {', '.join(kind.model_fields)}",
        )
    if doubled:
        raise ConfigError(f"recipe {path} names {doubled} twice", hint="YAML would keep the last one only")
    return fields


def _doubled(top: Any) -> str:
    """The first key that a mapping has twice, and its line; empty: none."""
    import yaml

    todo, seen = [top], set()
    while todo:
        node = todo.pop()
        if id(node) in seen or not isinstance(node, yaml.CollectionNode):
            continue
        seen.add(id(node))  # aliases are the same node again
        if isinstance(node, yaml.SequenceNode):
            todo += node.value
            continue
        keys = set()
        for key, value in node.value:
            todo.append(value)
            if key.value in keys and isinstance(key, yaml.ScalarNode):
                return f"{key.value!r} (line {key.start_mark.line + 1})"
            keys.add(str(key.value))
    return ""
