"""Images and documents of the messages dialect as chat's content parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Part = dict[str, Any]


def image_part(block: Mapping[str, Any]) -> Part | None:
    """An `image` block; None for a source that only Anthropic can resolve, such as a file's id."""
    url = _url(block.get("source"))
    return None if url is None else {"type": "image_url", "image_url": {"url": url}}


def document_part(block: Mapping[str, Any]) -> Part | None:
    """A `document` block: plain text as text, a base64 PDF as a file; None for what chat cannot say."""
    source = block.get("source")
    if not isinstance(source, dict):
        return None
    if source.get("type") == "text" and isinstance(source.get("data"), str):
        return {"type": "text", "text": source["data"]}
    if source.get("type") != "base64":
        return None
    title = block.get("title")
    named = {"filename": title} if isinstance(title, str) else {}
    return {"type": "file", "file": {**named, "file_data": _url(source)}}


def _url(source: object) -> str | None:
    match source:
        case {"type": "base64", "media_type": str(kind), "data": str(data)}:
            return f"data:{kind};base64,{data}"
        case {"type": "url", "url": str(url)}:
            return url
        case _:
            return None
