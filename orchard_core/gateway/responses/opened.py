"""One output item while it is streamed: the events that begin it, carry its pieces and end it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from orchard_core.gateway.responses import made
from orchard_core.gateway.responses.carried import Carried
from orchard_core.gateway.responses.made import Item, new_id
from orchard_core.gateway.responses.tools import Tool

Event = tuple[str, dict[str, object]]
"""Type and fields."""


class Opened(Protocol):
    """An item of some kind."""

    def begin(self) -> Iterator[Event]:
        """The events that announce it."""

    def take(self, piece: str) -> Iterator[Event]:
        """A piece of its text."""

    def end(self) -> Iterator[Event]:
        """The events that complete it."""

    def item(self) -> Item:
        """As it is now."""


class OpenReasoning:
    """Reasoning, told as one summary."""

    def __init__(self, place: int, carried: Carried) -> None:
        self.key = new_id("rs")
        self._at: Item = {"item_id": self.key, "output_index": place}
        self._carried = carried
        self._pieces: list[str] = []

    def begin(self) -> Iterator[Event]:
        """See Opened."""
        yield "response.output_item.added", {"output_index": self._at["output_index"], "item": self.item()}

    def take(self, piece: str) -> Iterator[Event]:
        """See Opened."""
        where = {**self._at, "summary_index": 0}
        if not self._pieces:
            empty = {"type": "summary_text", "text": ""}
            yield "response.reasoning_summary_part.added", {**where, "part": empty}
        self._pieces.append(piece)
        yield "response.reasoning_summary_text.delta", {**where, "delta": piece}

    def end(self) -> Iterator[Event]:
        """See Opened."""
        where = {**self._at, "summary_index": 0}
        item = self.item()
        for part in item["summary"]:
            yield "response.reasoning_summary_text.done", {**where, "text": part["text"]}
            yield "response.reasoning_summary_part.done", {**where, "part": part}
        yield "response.output_item.done", {"output_index": self._at["output_index"], "item": item}

    def item(self) -> Item:
        """See Opened."""
        return made.reasoning(self.key, "".join(self._pieces), self._carried)


class OpenMessage:
    """Text, or a refusal."""

    def __init__(self, place: int, *, refusal: bool = False) -> None:
        self.key = new_id("msg")
        self._place = place
        self._refusal = refusal
        self._pieces: list[str] = []
        self._where = {"item_id": self.key, "output_index": place, "content_index": 0}

    def begin(self) -> Iterator[Event]:
        """See Opened."""
        item = made.message(self.key, [], "in_progress")
        yield "response.output_item.added", {"output_index": self._place, "item": item}
        yield "response.content_part.added", {**self._where, "part": self._part()}

    def take(self, piece: str) -> Iterator[Event]:
        """See Opened."""
        self._pieces.append(piece)
        if self._refusal:
            yield "response.refusal.delta", {**self._where, "delta": piece}
        else:
            yield "response.output_text.delta", {**self._where, "delta": piece, "logprobs": []}

    def end(self) -> Iterator[Event]:
        """See Opened."""
        text = "".join(self._pieces)
        if self._refusal:
            yield "response.refusal.done", {**self._where, "refusal": text}
        else:
            yield "response.output_text.done", {**self._where, "text": text, "logprobs": []}
        yield "response.content_part.done", {**self._where, "part": self._part()}
        yield "response.output_item.done", {"output_index": self._place, "item": self.item()}

    def item(self) -> Item:
        """See Opened."""
        return made.message(self.key, [self._part()])

    def _part(self) -> Item:
        text = "".join(self._pieces)
        return made.refusal_part(text) if self._refusal else made.part(text)


class OpenCall:
    """A tool call. The text of a custom one is known only when its arguments are whole."""

    def __init__(self, place: int, call_id: str, tool: Tool) -> None:
        self.key = new_id("ctc" if tool.custom else "fc")
        self._place = place
        self._call_id = call_id
        self._tool = tool
        self._pieces: list[str] = []
        self._where = {"item_id": self.key, "output_index": place}

    def begin(self) -> Iterator[Event]:
        """See Opened."""
        item = made.call(self.key, self._call_id, self._tool, "", "in_progress")
        yield "response.output_item.added", {"output_index": self._place, "item": item}

    def take(self, piece: str) -> Iterator[Event]:
        """See Opened."""
        self._pieces.append(piece)
        if not self._tool.custom:
            yield "response.function_call_arguments.delta", {**self._where, "delta": piece}

    def end(self) -> Iterator[Event]:
        """See Opened."""
        item = self.item()
        if self._tool.custom:
            yield "response.custom_tool_call_input.delta", {**self._where, "delta": item["input"]}
            yield "response.custom_tool_call_input.done", {**self._where, "input": item["input"]}
        else:
            said = {"name": item["name"], "arguments": item["arguments"]}
            yield "response.function_call_arguments.done", {**self._where, **said}
        yield "response.output_item.done", {"output_index": self._place, "item": item}

    def item(self) -> Item:
        """See Opened."""
        return made.call(self.key, self._call_id, self._tool, "".join(self._pieces))
