"""Input items as chat messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from orchard_core.gateway.json_text import JsonFault
from orchard_core.gateway.responses.carried import Carried, read, restore
from orchard_core.gateway.responses.content import chat_content, count_other, texts
from orchard_core.gateway.responses.tools import chat_name, custom_arguments


def chat_messages(instructions: object, given: object, dropped: Counter[str]) -> list[dict[str, Any]]:
    """Messages for `instructions` and `input`. Raises JsonFault."""
    thread = _Thread(dropped)
    if instructions is not None:
        thread.system("\n\n".join(texts(instructions, "instructions", dropped)))
    if isinstance(given, str):
        thread.add({"role": "user", "content": given})
    elif isinstance(given, list):
        for item in given:
            thread.item(item)
    else:
        raise JsonFault("`input` must be a string or an array of items")
    messages = thread.whole()
    if not messages:
        raise JsonFault("`input` must not be empty")
    return messages


class _Thread:
    """Items one after the other. Those of one answer make one assistant message, until another item comes.

    Texts that come in pieces are gathered in lists: many pieces cost no quadratic joining.
    """

    def __init__(self, dropped: Counter[str]) -> None:
        self._messages: list[dict[str, Any]] = []
        self._front: list[str] = []
        self._dropped = dropped
        self._answer: dict[str, Any] | None = None
        self._pieces: dict[str, list[str]] = {}
        self._carried: list[Carried] = []
        self._joined = False

    def item(self, item: object) -> None:
        """One item. Raises JsonFault."""
        if not isinstance(item, dict):
            raise JsonFault("each item of `input` must be an object")
        kind = item.get("type", "message")
        visit = _KINDS.get(kind) if isinstance(kind, str) else None
        if visit is None:
            self._dropped[f"input.{kind}"] += 1
            return
        visit(self, item)

    def add(self, message: dict[str, Any]) -> None:
        """A whole message."""
        self.settle()
        self._messages.append(message)

    def system(self, text: str) -> None:
        """Several at the front become one: many chat templates take a system message only there."""
        self.settle()
        if self._front and len(self._messages) == 1:
            self._front.append(text)
            return
        if not self._messages:
            self._front.append(text)
        self._messages.append({"role": "system", "content": text})

    def settle(self) -> None:
        """The answer under way is whole."""
        if self._answer is not None:
            self._answer |= {name: "".join(pieces) for name, pieces in self._pieces.items()}
            for carried in self._carried:
                restore(self._answer, carried)
            if self._answer != _SILENT:  # what is left of another maker's reasoning
                self._messages.append(self._answer)
        self._answer, self._pieces, self._carried, self._joined = None, {}, [], False

    def whole(self) -> list[dict[str, Any]]:
        """All messages; nothing more comes."""
        self.settle()
        if self._front:
            self._messages[0]["content"] = "\n\n".join(self._front)
        return self._messages

    def open(self) -> dict[str, Any]:
        """The answer under way."""
        if self._answer is None:
            self._answer = dict(_SILENT)
        return self._answer

    def _say(self, name: str, text: str) -> None:
        """A piece of one of the answer's texts."""
        self.open()[name] = ""
        self._pieces.setdefault(name, []).append(text)

    def message(self, item: Mapping[str, Any]) -> None:
        """Of any role."""
        role = item.get("role")
        count_other(item, ("type", "id", "status", "role", "content"), "input.message", self._dropped)
        if role == "assistant":
            self.said(item.get("content"))
        elif role in ("system", "developer"):
            self.system("\n\n".join(texts(item.get("content"), "input.message.content", self._dropped)))
        elif role == "user":
            content = chat_content(item.get("content"), "input.message.content", self._dropped)
            self.add({"role": "user", "content": content})
        else:
            raise JsonFault("a message's `role` must be user, assistant, system or developer")

    def said(self, content: object) -> None:
        """The model's own words. Two messages in a row are two answers."""
        refusals: list[str] = []
        if isinstance(content, list):
            refusals = [_refusal(part) for part in content if _is_refusal(part)]
            content = [part for part in content if not _is_refusal(part)]
        text = "".join(texts(content, "input.message.content", self._dropped))
        if self.open()["content"] is not None and text and not self._joined:
            self.settle()
        if text or not refusals:
            self._say("content", text)
        for refusal in refusals:
            self._say("refusal", refusal)

    def reasoning(self, item: Mapping[str, Any]) -> None:
        """Begins an answer, unless it says that it goes on with one."""
        carried = read(item.get("encrypted_content"))
        if carried is None and item.get("encrypted_content") is not None:
            self._dropped["input.reasoning.encrypted_content"] += 1
        count_other(item, _REASONING, "input.reasoning", self._dropped)
        if carried is not None and carried.joins:
            self._joined = True
        elif self._answer is not None:
            self.settle()
        text = _reasoning_text(item)
        self.open()
        if text:
            self._say(carried.name if carried else Carried().name, text)
        if carried is not None:
            self._carried.append(carried)

    def call(self, item: Mapping[str, Any]) -> None:
        """A call of a function."""
        count_other(item, (*_CALL, "arguments"), "input.function_call", self._dropped)
        self._called(item, item.get("arguments"))

    def custom_call(self, item: Mapping[str, Any]) -> None:
        """A call of a custom tool."""
        count_other(item, (*_CALL, "input"), "input.custom_tool_call", self._dropped)
        text = item.get("input")
        if not isinstance(text, str):
            raise JsonFault("a `custom_tool_call` needs an `input` string")
        self._called(item, custom_arguments(text))

    def _called(self, item: Mapping[str, Any], arguments: object) -> None:
        name, key = item.get("name"), item.get("call_id")
        if not isinstance(name, str) or not isinstance(key, str) or not isinstance(arguments, str):
            raise JsonFault("a call needs the strings `call_id`, `name` and its arguments")
        function = {"name": chat_name(name, item.get("namespace")), "arguments": arguments}
        calls = self.open().setdefault("tool_calls", [])
        calls.append({"id": key, "type": "function", "function": function})

    def output(self, item: Mapping[str, Any]) -> None:
        """What a call gave."""
        kind, key = item.get("type"), item.get("call_id")
        if not isinstance(key, str):
            raise JsonFault(f"a `{kind}` needs a `call_id`")
        count_other(item, ("type", "id", "status", "call_id", "output"), f"input.{kind}", self._dropped)
        content = chat_content(item.get("output"), f"input.{kind}.output", self._dropped)
        self.add({"role": "tool", "tool_call_id": key, "content": content})


_SILENT: Mapping[str, Any] = {"role": "assistant", "content": None}
_CALL = ("type", "id", "status", "call_id", "name", "namespace")
_REASONING = ("type", "id", "status", "summary", "content", "encrypted_content")

_KINDS: dict[str, Callable[[_Thread, Mapping[str, Any]], None]] = {
    "message": _Thread.message,
    "reasoning": _Thread.reasoning,
    "function_call": _Thread.call,
    "custom_tool_call": _Thread.custom_call,
    "function_call_output": _Thread.output,
    "custom_tool_call_output": _Thread.output,
}


def _reasoning_text(item: Mapping[str, Any]) -> str:
    """The reasoning itself where it is open, else its summary."""
    for key, joint in (("content", ""), ("summary", "\n\n")):
        parts = item.get(key)
        if isinstance(parts, list):
            found = [part.get("text") for part in parts if isinstance(part, dict)]
            if found:
                return joint.join(text for text in found if isinstance(text, str))
    return ""


def _is_refusal(part: object) -> bool:
    return isinstance(part, dict) and part.get("type") == "refusal"


def _refusal(part: Mapping[str, Any]) -> str:
    text = part.get("refusal")
    if not isinstance(text, str):
        raise JsonFault("a part of type `refusal` needs a `refusal`")
    return text
