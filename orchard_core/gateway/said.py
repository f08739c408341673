"""What a session's model said by exact text, for dialects that carry it back otherwise.

Where a protocol carries a call's arguments as an object, what comes back is a parsed value: blanks, order and
spelling of numbers are lost, and with them the tokens that were sampled. The exact text is found again by
the call's id.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from orchard_core.gateway.json_text import JsonFault, loads


@dataclass(slots=True)
class Said:
    """The calls in a session's answers. Answers are read only when someone asks."""

    _unread: list[str] = field(default_factory=list)
    arguments: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    """Exact texts by the call's id and what clients make of them; several where a server repeats its ids."""
    broken: dict[str, list[str]] = field(default_factory=dict)
    """Arguments that are no object, by the call's id: clients differ in what they make of them."""
    texts: dict[tuple[str, ...], str] = field(default_factory=dict)
    """What was said beside calls, by their ids."""

    def add(self, answer: str) -> None:
        """An answer's chat message (JSON text)."""
        if '"tool_calls"' in answer:
            self._unread.append(answer)

    def recall(self) -> Recall:
        """For one request, whose messages come in order."""
        for answer in self._unread:
            message = loads(answer)
            calls = [call for call in message.get("tool_calls") or () if isinstance(call, dict)]
            for call in calls:
                self._call(str(call.get("id", "")), call.get("function"))
            content = message.get("content")
            ids = tuple(str(call.get("id", "")) for call in calls)
            self.texts[ids] = content if isinstance(content, str) else ""
        self._unread.clear()
        return Recall(self)

    def _call(self, call: str, function: object) -> None:
        arguments = function.get("arguments") if isinstance(function, dict) else None
        if not isinstance(arguments, str):
            return
        value = as_object(arguments)
        if value is None:
            self.broken.setdefault(call, []).append(arguments)
        # What is no object is shown as an empty one.
        self.arguments.setdefault((call, _canonical(value or {})), []).append(arguments)


class Recall:
    """Finds what the model said again, for the messages of one request."""

    def __init__(self, said: Said) -> None:
        self._said = said
        self._met: Counter[tuple[str, str]] = Counter()

    def arguments(self, call: str, value: object) -> str | None:
        """The arguments that the model gave, of which `value` is what a client made; None when it is not.

        Where one id stands for several calls that mean the same, they are taken in the order they were given.
        """
        key = (call, _canonical(value))
        exact = self._said.arguments.get(key)
        if exact is None:
            key, exact = (call, ""), self._said.broken.get(call)
        if exact is None:
            return None
        self._met[key] += 1
        return exact[min(self._met[key], len(exact)) - 1]

    def text(self, calls: Sequence[str], text: str) -> str:
        """What stood beside these calls, when `text` is that but for blanks at its ends; else `text`."""
        exact = self._said.texts.get(tuple(calls), text)
        return exact if exact.strip() == text.strip() else text


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
    """One text for all spellings of a value, those that JavaScript's numbers lead to included."""
    return json.dumps(_plain(value), sort_keys=True, separators=(",", ":"))


def _plain(value: object) -> object:
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return _number(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def _number(value: float) -> float | None:
    """As a double: 1.0 is 1, and 2**53 + 1 is 2**53."""
    try:
        double = float(value)
    except OverflowError:
        return None
    return int(double) if double.is_integer() else double
