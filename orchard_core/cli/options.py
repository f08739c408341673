"""Reading `key=value` options."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from orchard_core.errors import ConfigError


def key_values(pairs: Sequence[str], flag: str) -> dict[str, Any]:
    """`["a.b=1", "c=x"]` as `{"a": {"b": 1}, "c": "x"}`. A value is read as YAML, so 1, true, [a, b] and null
    are what they look like; what JSON has not, such as a date, stays text. Raises ConfigError for a pair
    without `=`, and for a key given two ways."""
    found: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not all(key.split(".")):
            raise ConfigError(f"{flag} {pair!r} is not key=value", hint=f"write {flag} NAME=VALUE")
        _put(found, key.split("."), _value(value), flag)
    return found


def _value(text: str) -> Any:
    import yaml

    try:
        value = yaml.safe_load(text) if text else ""
        return value if _is_json(value) else text
    except (yaml.YAMLError, ValueError, RecursionError):  # such as the date 2020-99-99
        return text


def _is_json(value: object) -> bool:
    """YAML has dates, sets and more; an option that looks like one of them is text."""
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_json(entry) for key, entry in value.items())
    if isinstance(value, list):
        return all(map(_is_json, value))
    return value is None or isinstance(value, str | int | float)


def _put(target: dict[str, Any], path: list[str], value: Any, flag: str) -> None:
    for part in path[:-1]:
        target = target.setdefault(part, {})
        if not isinstance(target, dict):
            raise ConfigError(f"{flag} sets {'.'.join(path)!r} both as a value and as a group")
    target[path[-1]] = value
