"""A stream of bytes as lines, within bounds."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping

from pydantic import JsonValue


class Lines:
    """Cuts what comes into lines, and keeps the end of it."""

    def __init__(self, *, line_bytes: int, tail_bytes: int) -> None:
        self._line_bytes = line_bytes
        self._tail_bytes = tail_bytes
        self._line = bytearray()
        self._tail = bytearray()
        self.size = 0
        """Bytes that came."""

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """The lines that the piece completes, without their ends."""
        self.size += len(piece)
        self._tail += piece[-self._tail_bytes :]
        del self._tail[: -self._tail_bytes]
        *whole, rest = piece.split(b"\n")
        for part in whole:
            self._add(part)
            yield bytes(self._line)
            self._line.clear()
        self._add(rest)

    def end(self) -> Iterator[bytes]:
        """A last line that lacks its end."""
        if self._line:
            yield bytes(self._line)
        self._line.clear()

    @property
    def tail(self) -> bytes:
        """The last bytes that came."""
        return bytes(self._tail)

    def _add(self, part: bytes) -> None:
        self._line += part[: max(0, self._line_bytes - len(self._line))]


def json_object(line: bytes) -> Mapping[str, JsonValue] | None:
    """The JSON object of a line; None for any other line, for programs print more than their events."""
    if not line.lstrip().startswith(b"{"):
        return None
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def json_events(read: Callable[[Mapping[str, JsonValue]], None]) -> Callable[[bytes], None]:
    """Takes lines and hands on those that are JSON objects."""

    def take(line: bytes) -> None:
        if (event := json_object(line)) is not None:
            read(event)

    return take
