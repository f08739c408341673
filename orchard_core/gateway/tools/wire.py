"""A tool's result as MCP writes it; the REST pair uses the same shape."""

from __future__ import annotations

import base64
from collections.abc import Sequence

from pydantic import JsonValue

from orchard_core.types.content import Text
from orchard_core.types.tool import ToolResult


def content_json(result: ToolResult) -> Sequence[JsonValue]:
    """The content blocks: text, and images as base64. Lone surrogates become escapes, for UTF-8 has none."""
    blocks: list[JsonValue] = []
    for part in result.content:
        if isinstance(part, Text):
            blocks.append({"type": "text", "text": part.text.encode("utf-8", "backslashreplace").decode()})
        else:
            data = base64.b64encode(part.data).decode()
            blocks.append({"type": "image", "data": data, "mimeType": part.media_type})
    return blocks
