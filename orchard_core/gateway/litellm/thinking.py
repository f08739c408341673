"""Signed reasoning in a stream, given whole.

LiteLLM cuts a signed block into pieces, which a vendor does not take back: it wants what it has signed.
"""

from __future__ import annotations

from typing import Any

_KEY = "thinking_blocks"


class Thinking:
    """The blocks of one streamed answer."""

    def __init__(self) -> None:
        self._open: dict[int, list[str]] = {}

    def whole(self, chunk: dict[str, Any]) -> dict[str, Any]:
        """The chunk with its pieces held back, and each block in the chunk that completes it."""
        for choice in chunk.get("choices", ()):
            delta = choice.get("delta") or {}
            also = delta.get("provider_specific_fields") or {}
            also.pop(_KEY, None)  # the same once more
            blocks = [block for piece in delta.pop(_KEY, ()) if (block := self._take(piece)) is not None]
            if blocks:
                delta[_KEY] = blocks
        return chunk

    def _take(self, piece: dict[str, Any]) -> dict[str, Any] | None:
        """The block that the piece completes."""
        if piece.get("type") != "thinking":
            return piece  # one that the vendor hid comes whole
        place = piece.get("index", 0)
        self._open.setdefault(place, []).append(piece.get("thinking") or "")
        if not piece.get("signature"):
            return None
        text = "".join(self._open.pop(place))
        return {"type": "thinking", "thinking": text, "signature": piece["signature"]}
