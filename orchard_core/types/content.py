"""What a tool or a message can contain."""

from __future__ import annotations

from typing import Literal

from orchard_core.types.base import Record


class Text(Record):
    """A piece of text."""

    type: Literal["text"] = "text"
    """Tells the kinds of content apart on the wire."""
    text: str
    """The text itself; any Unicode that UTF-8 can carry."""


class Image(Record):
    """A picture."""

    type: Literal["image"] = "image"
    """Tells the kinds of content apart on the wire."""
    media_type: str = "image/png"
    """IANA media type, such as `image/png` or `image/jpeg`."""
    data: bytes
    """The encoded file, not pixels."""


Content = Text | Image
