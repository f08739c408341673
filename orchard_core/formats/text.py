"""JSON texts of other people's files."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from orchard_core.formats.fault import Fault
from orchard_core.formats.limits import DEPTH, FIELD_BYTES
from orchard_core.gateway.json_text import JsonFault, dumps, loads


def parsed(data: bytes | str, *, field: str = "") -> Any:
    """The value of a JSON text; of members that repeat, the last. Raises Fault."""
    opened = (
        data.count(b"[") + data.count(b"{") if isinstance(data, bytes) else data.count("[") + data.count("{")
    )
    try:
        value = loads(data)
    except JsonFault as error:
        raise Fault(f"this is not JSON: {error}", field=field) from None
    if opened > DEPTH and _deeper(value):
        raise Fault(f"it is nested deeper than {DEPTH} levels", field=field)
    return value


def parsed_object(data: bytes | str, *, field: str = "") -> dict[str, Any]:
    """The same of an object."""
    return an_object(parsed(data, field=field), field)


def an_object(value: Any, field: str) -> dict[str, Any]:
    """The value, if it is an object. Raises Fault."""
    if not isinstance(value, dict):
        raise Fault(f"an object was expected, and this is {kind(value)}", field=field)
    return value


def a_list(value: Any, field: str) -> list[Any]:
    """The value, if it is a list. Raises Fault."""
    if not isinstance(value, list):
        raise Fault(f"a list was expected, and this is {kind(value)}", field=field)
    return value


def a_text(value: Any, field: str) -> str:
    """The value, if it is a text. Raises Fault."""
    if not isinstance(value, str):
        raise Fault(f"a text was expected, and this is {kind(value)}", field=field)
    return value


def kind(value: Any) -> str:
    """What people call a JSON value."""
    names = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number" if isinstance(value, int | float) else type(value).__name__)


dumps_spaced: Callable[[object], str] = json.JSONEncoder().encode
"""JSON as Python's own writer makes it, with `, ` and `: `."""


def dumped(value: Any) -> str:
    """Compact JSON text that UTF-8 can carry, lone surrogates escaped."""
    return dumps(value).decode()


def bounded(size: int, field: str) -> None:
    """Raises Fault for a field that is larger than any sound one."""
    if size > FIELD_BYTES:
        raise Fault(f"it has {size / 1e6:.0f} MB, and at most {FIELD_BYTES / 1e6:.0f} are read", field=field)


def _deeper(value: Any) -> bool:
    level = [value]
    for _ in range(DEPTH):
        level = (
            [
                below
                for held in level
                for below in (held.values() if isinstance(held, dict) else held)
                if isinstance(below, dict | list)
            ]
            if level and isinstance(level[0], dict | list)
            else []
        )
        if not level:
            return False
    return True
