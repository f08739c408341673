"""Server-sent events: writing them, and reading them from a stream of bytes cut anywhere."""

from __future__ import annotations

from collections.abc import Iterator

from orchard_core.errors import ModelReplyMalformed

MAX_EVENT = 16 << 20
"""Bytes of one event at most."""


def framed(data: bytes, event: str = "") -> bytes:
    """One event. Data that holds line ends (pretty JSON) takes one `data:` line each; a name that holds one
    is left out: what follows it would be a line of its own."""
    lines = data if b"\n" not in data else data.replace(b"\n", b"\ndata: ")
    if event and event.isascii() and event.isprintable():
        return b"event: %b\ndata: %b\n\n" % (event.encode(), lines)
    return b"data: %b\n\n" % lines


class EventReader:
    """Gives the `data` of each event; comments and other fields are skipped."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._data: list[bytes] = []

    @property
    def empty(self) -> bool:
        """No part of an event is waiting for the rest."""
        return not self._buffer.strip() and not self._data

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Events that this piece completes. Raises ModelReplyMalformed for one that is too large."""
        self._buffer += piece
        if len(self._buffer) > MAX_EVENT:
            raise ModelReplyMalformed(f"the model server sent an event larger than {MAX_EVENT} bytes")
        end = self._buffer.rfind(b"\n")
        if end < 0:
            return
        lines = bytes(self._buffer[:end]).split(b"\n")
        del self._buffer[: end + 1]
        for line in lines:
            data = self._line(line.removesuffix(b"\r"))
            if data is not None:
                yield data

    def _line(self, line: bytes) -> bytes | None:
        if not line:
            data, self._data = b"\n".join(self._data), []
            return data or None
        if line.startswith(b"data:"):
            self._data.append(line[5:].removeprefix(b" "))
        return None
