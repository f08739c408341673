"""What a session's model said by exact text, for dialects that carry it back otherwise.

Where a protocol carries a call's arguments as an object, what comes back is a parsed value: blanks, order and
spelling of numbers are lost, and with them the tokens that were sampled. The exact text is found again by
the call's id.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from orchard_core.gateway.json_text import JsonFault, loads


@dataclass(slots=True)
class Said:
    """The calls in a session's answers. Answers are read only when someone asks."""

    _unread: list[str] = field(default_factory=list)
    _arguments: dict[tuple[str, str], str] = field(default_factory=dict)
    _broken: dict[str, str] = field(default_factory=dict)
    _texts: dict[tuple[str, ...], str] = field(default_factory=dict)

    def add(self, answer: str) -> None:
        """An answer's chat message (JSON text)."""
        if '"tool_calls"' in answer:
            self._unread.append(answer)

    def arguments(self, call: str, value: object) -> str | None:
        """The arguments that the model gave, of which `value` is what a client made; None when it is not."""
        self._read()
        exact = self._arguments.get((call, _canonical(value)))
        return self._broken.get(call) if exact is None else exact

    def text(self, calls: Sequence[str], text: str) -> str:
        """What stood beside these calls, when `text` is that but for blanks at its ends; else `text`."""
        self._read()
        exact = self._texts.get(tuple(calls), text)
        return exact if exact.strip() == text.strip() else text

    def _read(self) -> None:
        for answer in self._unread:
            message = loads(answer)
            calls = [call for call in message.get("tool_calls") or () if isinstance(call, dict)]
            for call in calls:
                self._call(str(call.get("id", "")), call.get("function"))
            content = message.get("content")
            self._texts[tuple(str(call.get("id", "")) for call in calls)] = (
                content if isinstance(content, str) else ""
            )
        self._unread.clear()

    def _call(self, call: str, function: object) -> None:
        arguments = function.get("arguments") if isinstance(function, Mapping) else None
        if not isinstance(arguments, str):
            return
        value = as_object(arguments)
        if value is None:
            self._broken[call] = arguments
        else:
            self._broken.pop(call, None)
            self._arguments[call, _canonical(value)] = arguments


def as_object(arguments: str) -> dict[str, Any] | None:
    """Arguments (JSON text) as an object, none at all as an empty one; None when they are no object."""
    if not arguments.strip():
        return {}
    try:
        value = loads(arguments)
    except JsonFault:
        return None
    return value if isinstance(value, dict) else None


def _canonical(value: object) -> str:
    """One text for all spellings of a value. An integral float is its integer, as JavaScript writes it."""
    return json.dumps(_plain(value), sort_keys=True, separators=(",", ":"))


def _plain(value: object) -> object:
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value
