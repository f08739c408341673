"""The journal: one JSON line an entry, each with a checksum of what stands before it.

A line is `{...,"crc":"xxxxxxxx"}`: plain JSON for any reader, with CRC-32 over the bytes before `,"crc"`.
A bad line with nothing valid after it is a torn tail: it was never reported and may be cut. A bad line in
the middle is passed over and counted, and nothing after it is lost.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from orchard_core.rollout.store.entry import Entry
from orchard_core.rollout.text import storable_tree

_ADAPTER: TypeAdapter[Entry] = TypeAdapter(Entry)
_TAIL = len(b',"crc":"00000000"}')


def encode(entry: Entry) -> bytes:
    """The line of an entry, newline included."""
    try:
        body = _ADAPTER.dump_json(entry)[:-1]
    except ValueError:  # a lone surrogate: pydantic's serialisation error is a ValueError
        clean = _ADAPTER.validate_python(storable_tree(_ADAPTER.dump_python(entry)))
        body = _ADAPTER.dump_json(clean)[:-1]
    return b'%s,"crc":"%08x"}\n' % (body, zlib.crc32(body))


def decode(line: bytes) -> Entry | None:
    """The entry of a line without its newline; None when the line is torn or damaged."""
    body = line[:-_TAIL]
    if line[-_TAIL:] != b',"crc":"%08x"}' % zlib.crc32(body):
        return None
    try:
        return _ADAPTER.validate_json(body + b"}")
    except ValidationError:
        return None


class JournalReader:
    """Reads a journal from its beginning to its last whole line, while another process may append."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.valid_bytes = 0
        """End of the last valid line read so far."""
        self.damaged = 0
        """Bad lines that have a valid line after them."""

    def entries(self) -> Iterator[Entry]:
        """Every valid entry in order."""
        position, bad = 0, 0
        try:
            stream = self._path.open("rb")
        except FileNotFoundError:
            return
        with stream:
            for line in stream:
                position += len(line)
                entry = decode(line[:-1]) if line.endswith(b"\n") else None
                if entry is None:
                    bad += 1
                    continue
                self.damaged += bad
                bad = 0
                self.valid_bytes = position
                yield entry
