"""One message out of a stream of chat chunks, as any client puts it together."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Assembled:
    """What the chunks say together."""

    text: str = ""
    """The content."""
    calls: dict[int, dict[str, str]] = field(default_factory=dict)
    """Tool calls by index: id, name, arguments."""
    finish_reason: str | None = None
    """The last one told."""
    chunks: int = 0
    """How many payloads there were."""

    @property
    def said(self) -> tuple[str, list[tuple[str, str]]]:
        """Text, and name and arguments of each call."""
        calls = [self.calls[index] for index in sorted(self.calls)]
        return self.text, [(call["name"], call["arguments"]) for call in calls]


async def assemble(payloads: AsyncIterator[bytes]) -> Assembled:
    """Read a stream to its end. Raises ValueError for a payload that is no JSON."""
    whole = Assembled()
    async for payload in payloads:
        whole.chunks += 1
        for choice in json.loads(payload).get("choices", []):
            _add(whole, choice)
    return whole


def said_by(body: bytes) -> tuple[str, list[tuple[str, str]]]:
    """Text and calls of a whole answer, in the same form."""
    message: dict[str, Any] = json.loads(body)["choices"][0]["message"]
    calls = [call["function"] for call in message.get("tool_calls") or []]
    return message.get("content") or "", [(call["name"], call["arguments"]) for call in calls]


def _add(whole: Assembled, choice: dict[str, Any]) -> None:
    delta = choice.get("delta") or {}
    whole.text += delta.get("content") or ""
    for piece in delta.get("tool_calls") or []:
        call = whole.calls.setdefault(piece.get("index", 0), {"id": "", "name": "", "arguments": ""})
        call["id"] += piece.get("id") or ""
        for key in ("name", "arguments"):
            call[key] += (piece.get("function") or {}).get(key) or ""
    whole.finish_reason = choice.get("finish_reason") or whole.finish_reason
