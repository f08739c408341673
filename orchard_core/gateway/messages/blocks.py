"""Content blocks of the messages dialect as chat messages, one message at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from orchard_core.gateway.json_text import JsonFault, dumps
from orchard_core.gateway.messages.images import Part, document_part, image_part
from orchard_core.gateway.messages.signatures import reasoning_field
from orchard_core.gateway.reasoning import FIELDS
from orchard_core.gateway.said import Recall

Message = dict[str, Any]


class Turns:
    """Translates messages one by one; each depends on nothing but itself and what the model said before."""

    def __init__(self, recall: Recall, dropped: Counter[str]) -> None:
        self._recall = recall
        self._dropped = dropped

    def system(self, content: object) -> Message:
        """The `system` field, or a message of that role."""
        texts = [block["text"] for block in self._blocks(content, "system") if self._kept(block)]
        return {"role": "system", "content": "\n".join(texts)}

    def _kept(self, block: Mapping[str, Any]) -> bool:
        text = block.get("text")
        if block.get("type") != "text" or not isinstance(text, str):
            self._dropped[f"system.{block.get('type')}"] += 1
            return False
        if text.startswith(_BILLING):
            # Anthropic's servers take it out too; it differs from call to call, and no prefix would hold.
            self._dropped["system.billing_header"] += 1
            return False
        return True

    def message(self, message: object, place: int) -> Iterator[Message]:
        """The chat messages for one message. Raises JsonFault."""
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise JsonFault(f"messages[{place}] must be an object with a `role`")
        if "content" not in message:
            raise JsonFault(f"messages[{place}] has no `content`")
        self._count_others(message, ("role", "content"), "messages")
        role, content = message["role"], message["content"]
        if role == "assistant":
            yield self._assistant(self._blocks(content, "messages.content"))
        elif role == "user":
            yield from self._user(self._blocks(content, "messages.content"))
        elif role == "system":
            yield self.system(content)
        else:
            raise JsonFault(f"messages[{place}] has the role {role[:50]!r}: user, assistant or system is due")

    def _blocks(self, content: object, where: str) -> list[Mapping[str, Any]]:
        """Content as blocks; a string is one of text."""
        if isinstance(content, str):
            return [{"type": "text", "text": content}]
        if not isinstance(content, list):
            raise JsonFault(f"`{where}` must be a string or an array of blocks")
        for block in content:
            if not isinstance(block, dict) or not isinstance(block.get("type"), str):
                raise JsonFault(f"`{where}` holds what is no block: each is an object with a `type`")
            if block["type"] == "text" and not isinstance(block.get("text"), str):
                raise JsonFault(f"`{where}` holds a text block without `text`")
            self._count_others(block, _KNOWN.get(block["type"]), where)
        return content

    def _count_others(self, block: Mapping[str, Any], known: Sequence[str] | None, where: str) -> None:
        for name in block if known is not None else ():
            if name not in known and block[name] is not None:  # type: ignore[operator]
                self._dropped[f"{where}.{name}"] += 1

    def _user(self, blocks: Sequence[Mapping[str, Any]]) -> Iterator[Message]:
        """Results of tools are messages of their own; images in them follow in the user's next words."""
        parts: list[Part] = []
        tools = [block for block in blocks if block["type"] == "tool_result"]
        for block in blocks:
            if block["type"] == "tool_result":
                if parts and block is tools[0]:
                    yield {"role": "user", "content": _content(parts)}
                    parts = []
                message, images = self._result(block)
                yield message
                parts += images
            else:
                parts += self._part(block)
        if parts or not tools:
            yield {"role": "user", "content": _content(parts)}

    def _part(self, block: Mapping[str, Any]) -> list[Part]:
        match block["type"]:
            case "text":
                return [{"type": "text", "text": block["text"]}]
            case "image":
                part = image_part(block)
            case "document":
                part = document_part(block)
            case _:
                part = None
        if part is None:
            self._dropped[f"messages.content.{block['type']}"] += 1
            return []
        return [part]

    def _result(self, block: Mapping[str, Any]) -> tuple[Message, list[Part]]:
        call = block.get("tool_use_id")
        if not isinstance(call, str):
            raise JsonFault("a `tool_result` block names no `tool_use_id`")
        parts: list[Part] = []
        for inner in self._blocks(block.get("content") or [], "messages.content.tool_result"):
            parts += self._part(inner)
        text = "\n".join(part["text"] for part in parts if part["type"] == "text")
        others = [part for part in parts if part["type"] != "text"]
        if block.get("is_error") is True:
            text = f"Error: {text}"
        label = [{"type": "text", "text": f"From the result of {call}:"}] if others else []
        return {"role": "tool", "tool_call_id": call, "content": text}, [*label, *others]

    def _assistant(self, blocks: Sequence[Mapping[str, Any]]) -> Message:
        """An answer sent back is what the model gave: its text, reasoning and arguments exactly."""
        texts: list[str] = []
        reasoning: dict[str, list[str]] = {}
        calls: list[Part] = []
        for block in blocks:
            match block["type"]:
                case "text":
                    texts.append(block["text"])
                case "thinking":
                    name = reasoning_field(block.get("signature"))
                    if name is None:
                        self._dropped["messages.content.thinking.signature"] += 1
                    reasoning.setdefault(name or FIELDS[0], []).append(str(block.get("thinking", "")))
                case "tool_use":
                    calls.append(self._call(block))
                case kind:
                    self._dropped[f"messages.content.{kind}"] += 1
        text = self._recall.text([call["id"] for call in calls], "".join(texts))
        message: Message = {"role": "assistant", "content": text or None if calls else text}
        message |= {name: "".join(pieces) for name, pieces in reasoning.items()}
        return {**message, "tool_calls": calls} if calls else message

    def _call(self, block: Mapping[str, Any]) -> Part:
        call, name = block.get("id"), block.get("name")
        if not isinstance(call, str) or not isinstance(name, str):
            raise JsonFault("a `tool_use` block needs an `id` and a `name`")
        given = block.get("input", {})
        exact = self._recall.arguments(call, given)
        arguments = dumps(given).decode() if exact is None else exact
        return {"id": call, "type": "function", "function": {"name": name, "arguments": arguments}}


def _content(parts: Sequence[Part]) -> object:
    """Text alone is a string: some chat templates take nothing else."""
    if all(part["type"] == "text" for part in parts):
        return "\n".join(part["text"] for part in parts)
    return list(parts)


_BILLING = "x-anthropic-billing-header:"
"""How the block begins by which Claude Code tells its maker what to bill."""

_KNOWN: dict[str, Sequence[str]] = {
    "text": ("type", "text"),
    "image": ("type", "source"),
    "document": ("type", "source", "title"),
    "thinking": ("type", "thinking", "signature"),
    "tool_use": ("type", "id", "name", "input"),
    "tool_result": ("type", "tool_use_id", "content", "is_error"),
}
"""Fields of blocks that are translated; others are counted."""
