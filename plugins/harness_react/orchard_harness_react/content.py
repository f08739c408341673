"""Text and pictures as parts of a message, and text cut to its head and tail."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence

from pydantic import JsonValue

from orchard_core import Content, Image, Text, ToolResult
from orchard_harness_react.protocol import Message

_MARKER = 140
"""Room for the words that stand where text was cut."""


_PICTURE = '"image_url"'
_GONE: JsonValue = {"type": "text", "text": "[an older image was left out]"}


def utf8(text: str) -> str:
    """The text with whatever UTF-8 cannot carry (lone surrogates) replaced by `?`."""
    return text.encode("utf-8", "replace").decode()


def cut(text: str, limit: int, size: str = "") -> str:
    """At most `limit` characters: the head, a marker, the tail. `size` is the true size when it is not
    the length of `text`, such as `52,428,800 bytes`."""
    if len(text) <= limit:
        return text
    tail = max(limit - _MARKER, 2) // 2
    total = size or f"{len(text):,} characters"
    shown = f"the first and the last {tail:,} characters are shown"
    return f"{text[:tail]}\n\n[... the middle is cut out: {total} in all, {shown} ...]\n\n{text[-tail:]}"


def cut_result(result: ToolResult, limit: int) -> ToolResult:
    """A result whose texts are cut; together they may take `limit` characters, each its even share."""
    texts = [part for part in result.content if isinstance(part, Text)]
    if sum(len(part.text) for part in texts) <= limit:
        return result
    share = max(limit // len(texts), 1)
    content = tuple(
        Text(text=cut(part.text, share)) if isinstance(part, Text) else part for part in result.content
    )
    return result.model_copy(update={"content": content})


def text_of(content: Iterable[Content]) -> str:
    """The texts, one under the other; a picture leaves a note in its place."""
    return "\n".join(part.text if isinstance(part, Text) else _note(part) for part in content)


def images_of(content: Iterable[Content]) -> list[Image]:
    """The pictures."""
    return [part for part in content if isinstance(part, Image)]


def image_part(image: Image) -> JsonValue:
    """A picture as a message part."""
    data = base64.b64encode(image.data).decode()
    return {"type": "image_url", "image_url": {"url": f"data:{image.media_type};base64,{data}"}}


def without_old_images(messages: Sequence[Message], keep: int) -> list[Message]:
    """The conversation with all but the last `keep` pictures replaced by a word."""
    left = keep
    found: list[Message] = []
    for message in reversed(messages):
        lighter, shown = _lighter(message, left) if _PICTURE in message.raw else (message, 0)
        found.append(lighter)
        left -= shown
    return found[::-1]


def _lighter(message: Message, keep: int) -> tuple[Message, int]:
    """The message with its last `keep` pictures, and how many it has now."""
    fields = message.parsed()
    content = fields.get("content")
    if fields.get("role") != "user" or not isinstance(content, list):
        return message, 0
    places = [
        i for i, part in enumerate(content) if isinstance(part, dict) and part.get("type") == "image_url"
    ]
    kept = places[max(len(places) - keep, 0) :]
    parts: list[JsonValue] = [
        _GONE if i in places and i not in kept else part for i, part in enumerate(content)
    ]
    return Message.of("user", parts), len(kept)


def _note(image: Image) -> str:
    return f"[{image.media_type}, {len(image.data):,} bytes: shown below]"
