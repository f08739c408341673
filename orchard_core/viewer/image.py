"""Pictures in rollouts: what kind they are and how large, read off their first bytes and never decoded."""

from __future__ import annotations

import base64
import binascii
import struct
from dataclasses import dataclass

LARGEST = 24 << 20
"""Bytes of a picture that is sent to the browser."""
MOST_PIXELS = 50_000_000
"""Pixels that a picture may claim: a browser has to unpack them all."""
_JPEG_SIZES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_DATA = "data:image/"
_PEEK = 256 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A raster image, safe to be shown."""

    media_type: str
    """As its bytes tell, whatever it was called."""
    width: int
    """Pixels."""
    height: int
    """Pixels."""
    data: bytes
    """The file."""


def is_data_url(address: str) -> bool:
    """Whether it says that it holds an image."""
    return address[: len(_DATA)].lower() == _DATA


def from_data_url(address: str) -> Picture | str:
    """The picture, or why it is not shown."""
    head, comma, body = address.partition(",")
    if not comma or not head.lower().endswith(";base64"):
        return "not base64"
    if len(body) > LARGEST * 4 // 3 + 4:
        return "too large to be shown"
    try:
        return picture(base64.b64decode(body, validate=True))
    except (binascii.Error, ValueError):
        return "broken base64"


def peek(address: str) -> Picture | str:
    """The same without its data: only the beginning is unpacked."""
    head, comma, body = address[:_PEEK].partition(",")
    if not comma or not head.lower().endswith(";base64"):
        return "not base64"
    if len(address) > LARGEST * 4 // 3:
        return "too large to be shown"
    try:
        return picture(base64.b64decode(body[: len(body) // 4 * 4], validate=True))
    except (binascii.Error, ValueError):
        return "broken base64"


def picture(data: bytes) -> Picture | str:
    """The picture in a file's bytes, or why it is not shown. SVG is none: it can hold a script."""
    if len(data) > LARGEST:
        return "too large to be shown"
    try:
        found = _kind(data)
    except (struct.error, IndexError):
        return "broken"
    if found is None:
        return "not PNG, JPEG, GIF or WebP"
    media_type, width, height = found
    if width * height > MOST_PIXELS or not width or not height:
        return f"claims {width:,} by {height:,} pixels"
    return Picture(media_type=media_type, width=width, height=height, data=data)


def _kind(data: bytes) -> tuple[str, int, int] | None:
    if data.startswith(b"\x89PNG\r\n\x1a\n") and data[12:16] == b"IHDR":
        return ("image/png", *struct.unpack_from(">II", data, 16))
    if data.startswith((b"GIF87a", b"GIF89a")):
        return ("image/gif", *struct.unpack_from("<HH", data, 6))
    if data.startswith(b"\xff\xd8\xff"):
        size = _jpeg(data)
        return size and ("image/jpeg", *size)
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        size = _webp(data)
        return size and ("image/webp", *size)
    return None


def _jpeg(data: bytes) -> tuple[int, int] | None:
    at = 2
    while at + 9 < len(data) and data[at] == 0xFF:
        if data[at + 1] in _JPEG_SIZES:
            height, width = struct.unpack_from(">HH", data, at + 5)
            return width, height
        at += 2 + max(2, struct.unpack_from(">H", data, at + 2)[0])
    return None


def _webp(data: bytes) -> tuple[int, int] | None:
    kind = data[12:16]
    if kind == b"VP8X":
        return 1 + int.from_bytes(data[24:27], "little"), 1 + int.from_bytes(data[27:30], "little")
    if kind == b"VP8L":
        bits = int.from_bytes(data[21:25], "little")
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    if kind == b"VP8 ":
        width, height = struct.unpack_from("<HH", data, 26)
        return width & 0x3FFF, height & 0x3FFF
    return None
