"""How one rollout lies in a shard.

A frame is a zstd skippable frame of 24 bytes followed by one zstd frame of one JSON line:

    magic 0x184D2A5C | size 16 | tag "ORC1" | payload bytes (u64) | CRC-32 of the payload

All numbers are little-endian. Plain zstd passes over the first, so a shard is also an ordinary
`.jsonl.zst` file; the checksum is verified before anything is unpacked.
"""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import zstandard

from orchard_core.errors import RecordCorrupt, StoreError
from orchard_core.rollout.text import storable_tree
from orchard_core.types.rollout import SCHEMA_VERSION, Rollout

_HEADER = struct.Struct("<II4sQI")
_MAGIC = 0x184D2A5C
_TAG = b"ORC1"
LEVEL = 1
"""zstd level: on trajectories, level 3 takes twice the time for a tenth less space."""


def to_json(rollout: Rollout) -> bytes:
    """The record's JSON line. Never fails on text: a lone surrogate is written out as an escape."""
    try:
        return rollout.__pydantic_serializer__.to_json(rollout) + b"\n"
    except ValueError:  # pydantic's serialisation error is a ValueError
        clean = Rollout.model_validate(storable_tree(rollout.model_dump()))
        return clean.model_dump_json().encode() + b"\n"


def pack(line: bytes) -> bytes:
    """One whole frame."""
    payload = zstandard.ZstdCompressor(level=LEVEL, write_content_size=True).compress(line)
    return _HEADER.pack(_MAGIC, 16, _TAG, len(payload), zlib.crc32(payload)) + payload


def unpack(frame: bytes, *, where: str) -> Rollout:
    """The rollout of one whole frame. Raises RecordCorrupt, and StoreError for a newer schema."""
    if len(frame) < _HEADER.size:
        raise RecordCorrupt(f"{where}: the record is cut short", hint="restore the shard from a copy")
    magic, _, tag, length, crc = _HEADER.unpack_from(frame)
    payload = frame[_HEADER.size :]
    if magic != _MAGIC or tag != _TAG or length != len(payload) or zlib.crc32(payload) != crc:
        raise RecordCorrupt(f"{where}: the checksum does not match", hint="restore the shard from a copy")
    line = zstandard.ZstdDecompressor().stream_reader(io.BytesIO(payload)).read()
    return parse(line, where=where)


def parse(line: bytes, *, where: str) -> Rollout:
    """The rollout of one JSON line. Raises StoreError when a newer Orchard wrote it."""
    try:
        return Rollout.model_validate_json(line)
    except ValueError as error:
        if _is_newer(line):
            raise StoreError(
                f"{where}: written by a newer Orchard (this one reads schema {SCHEMA_VERSION})",
                hint="pip install --upgrade orchard-core",
            ) from None
        raise RecordCorrupt(f"{where}: not a rollout: {error}") from error


def _is_newer(line: bytes) -> bool:
    head = line[:40].removeprefix(b'{"schema_version":').partition(b",")[0]
    return head.isdigit() and int(head) > SCHEMA_VERSION


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Where a whole frame lies in its shard."""

    offset: int
    """First byte."""
    length: int
    """Bytes, header included."""


def scan(path: Path, start: int) -> Iterator[Span]:
    """Whole, intact frames from `start` to the first byte that is not one."""
    size = path.stat().st_size
    with path.open("rb") as stream:
        offset = start
        while offset + _HEADER.size <= size:
            stream.seek(offset)
            magic, _, tag, length, crc = _HEADER.unpack(stream.read(_HEADER.size))
            if magic != _MAGIC or tag != _TAG or offset + _HEADER.size + length > size:
                return
            if zlib.crc32(stream.read(length)) != crc:
                return
            yield Span(offset=offset, length=_HEADER.size + length)
            offset += _HEADER.size + length
