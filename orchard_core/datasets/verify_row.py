"""What is wrong with one row: its JSON, its messages, its masks, its token ids."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from orchard_core.gateway.json_text import JsonFault, loads
from orchard_core.types.dataset import DatasetRow, RecordedTokens

ROLES = frozenset({"system", "developer", "user", "assistant", "tool"})
FieldFault = tuple[str, str]
"""The field, and what is wrong with it."""


def row_faults(row: DatasetRow) -> Iterator[FieldFault]:
    """Every fault of a row, in the order of its fields."""
    if not row.id:
        yield "id", "is empty"
    messages = _array(row.messages)
    if isinstance(messages, str):
        yield "messages", messages
    else:
        yield from _message_faults(messages)
        yield from _length_faults(row, messages)
        if row.tokens is not None:
            yield from _answer_faults(row.tokens, messages)
    yield from _tool_faults(row.tools)
    if row.tokens is not None:
        yield from _token_faults(row, row.tokens)


def _array(text: str) -> list[Any] | str:
    """The values of a JSON array, or what is wrong with it."""
    try:
        value = loads(text)
    except JsonFault as fault:
        return f"is not JSON: {str(fault)[:200]}"
    return value if isinstance(value, list) else "is no JSON array"


def _tool_faults(text: str) -> Iterator[FieldFault]:
    tools = _array(text)
    if isinstance(tools, str):
        yield "tools", tools
        return
    for place, tool in enumerate(tools):
        if not isinstance(tool, dict):
            yield f"tools[{place}]", "is no object"
        elif tool.get("type") == "function" and not isinstance(_function(tool).get("name"), str):
            yield f"tools[{place}].function.name", "is no text"


def _message_faults(messages: list[Any]) -> Iterator[FieldFault]:
    asked = _Asked()
    for place, message in enumerate(messages):
        where = f"messages[{place}]"
        if not isinstance(message, dict):
            yield where, "is no object"
            continue
        role, content = message.get("role"), message.get("content")
        if role not in ROLES:
            yield f"{where}.role", f"{str(role)[:40]!r} is none of: {', '.join(sorted(ROLES))}"
        if not (content is None or isinstance(content, str) or _is_parts(content)):
            yield f"{where}.content", "is neither text nor a list of parts"
        if role == "assistant":
            yield from asked.end()
            yield from _call_faults(where, message, asked)
        elif role == "tool":
            yield from asked.answer(where, message.get("tool_call_id"))


def _is_parts(content: object) -> bool:
    return isinstance(content, list) and all(
        isinstance(part, dict) and isinstance(part.get("type"), str) for part in content
    )


@dataclass(slots=True)
class _Asked:
    """Calls of the last assistant message that have no result yet, by id, and where they stand."""

    open: Counter[str] = field(default_factory=Counter)
    places: dict[str, str] = field(default_factory=dict)

    def ask(self, key: str, where: str) -> None:
        self.open[key] += 1
        self.places[key] = where

    def answer(self, where: str, key: object) -> Iterator[FieldFault]:
        if not isinstance(key, str):
            yield f"{where}.tool_call_id", "is no text"
        elif key not in self.places:
            yield f"{where}.tool_call_id", f"{key[:80]!r} answers no call of the message before"
        else:
            self.open[key] -= 1

    def end(self) -> Iterator[FieldFault]:
        """Another answer of the model comes: nothing may be open."""
        for key, count in self.open.items():
            if count > 0:
                yield self.places[key], f"the call {key[:80]!r} is never answered"
        self.open.clear()
        self.places.clear()


def _call_faults(where: str, message: dict[str, Any], asked: _Asked) -> Iterator[FieldFault]:
    calls = message.get("tool_calls")
    if calls is None:
        return
    if not isinstance(calls, list):
        yield f"{where}.tool_calls", "is no list"
        return
    for number, call in enumerate(calls):
        own = f"{where}.tool_calls[{number}]"
        if not isinstance(call, dict) or not isinstance(call.get("id"), str):
            yield f"{own}.id", "is no text"
            continue
        asked.ask(call["id"], own)
        for name in ("name", "arguments"):
            if call.get("type", "function") == "function" and not isinstance(_function(call).get(name), str):
                yield f"{own}.function.{name}", "is no text"


def _function(value: dict[str, Any]) -> dict[str, Any]:
    function = value.get("function")
    return function if isinstance(function, dict) else {}


def _length_faults(row: DatasetRow, messages: list[Any]) -> Iterator[FieldFault]:
    count = len(messages)
    answers = [place for place, message in enumerate(messages) if _role(message) == "assistant"]
    if row.turns != len(answers):
        yield "turns", f"is {row.turns}, and there are {len(answers)} assistant messages"
    if len(row.mask) != count:
        yield "mask", f"has {len(row.mask)} values for {count} messages"
    if row.weights and len(row.weights) != count:
        yield "weights", f"has {len(row.weights)} values for {count} messages"
    if row.values and len(row.values) != len(answers) + 1:
        yield "values", f"has {len(row.values)} values for {len(answers)} answers; one more is due"
    for place, value in enumerate(row.mask):
        if value not in (0, 1):
            yield f"mask[{place}]", f"is {value}: 0 or 1 is due"
        elif value and place < count and place not in answers:
            yield f"mask[{place}]", "is 1 on a message that is not the assistant's"


def _role(message: object) -> object:
    return message.get("role") if isinstance(message, dict) else None


def _answer_faults(tokens: RecordedTokens, messages: list[Any]) -> Iterator[FieldFault]:
    for place, span in enumerate(tokens.answers):
        inside = 0 <= span.message < len(messages)
        if not inside or _role(messages[span.message]) != "assistant":
            yield f"tokens.answers[{place}].message", f"{span.message} is no assistant message"


def _token_faults(row: DatasetRow, tokens: RecordedTokens) -> Iterator[FieldFault]:
    size = len(tokens.token_ids)
    for name in ("mask", "logprobs"):
        held = getattr(tokens, name)
        if len(held) != size:
            yield f"tokens.{name}", f"has {len(held)} values for {size} ids"
    if row.token_count != size:
        yield "token_count", f"is {row.token_count}, and {size} ids are recorded"
    bad = next((place for place, value in enumerate(tokens.mask) if value not in (0, 1)), None)
    if bad is not None:
        yield f"tokens.mask[{bad}]", f"is {tokens.mask[bad]}: 0 or 1 is due"
    yield from _span_faults("answers", tokens.answers, size)
    yield from _span_faults("versions", tokens.versions, size)
    for before, after in pairwise(tokens.answers):
        if after.start < before.stop or after.message <= before.message:
            yield "tokens.answers", f"the span at {after.start} does not come after the one at {before.start}"
    yield from _outside(tokens, _answered(tokens))


def _span_faults(name: str, spans: tuple[Any, ...], size: int) -> Iterator[FieldFault]:
    for place, span in enumerate(spans):
        if not 0 <= span.start <= span.stop <= size:
            yield f"tokens.{name}[{place}]", f"{span.start} to {span.stop} does not lie in {size} ids"


def _answered(tokens: RecordedTokens) -> bytearray:
    inside = bytearray(len(tokens.mask))
    for span in tokens.answers:
        start, stop = max(span.start, 0), min(span.stop, len(inside))
        inside[start:stop] = b"\x01" * max(stop - start, 0)
    return inside


def _outside(tokens: RecordedTokens, inside: bytearray) -> Iterator[FieldFault]:
    for place, value in enumerate(tokens.mask):
        if value == 1 and not inside[place]:
            yield f"tokens.mask[{place}]", "is 1 outside of every answer"
            return
