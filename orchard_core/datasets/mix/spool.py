"""Rows on their way from a source to a shard: one compressed frame each, so that any can be fetched."""

from __future__ import annotations

import os
import struct
from array import array
from pathlib import Path

import orjson
import zstandard

from orchard_core.errors import DatasetCorrupt
from orchard_core.types.dataset import DatasetRow, RecordedTokens

_HEAD = struct.Struct("<6Q")
"""Bytes of the small fields, messages, tools, token ids, mask, log-probabilities."""
_BIG = {"messages", "tools", "tokens"}
_LEVEL = 1


class Packer:
    """Rows to frames."""

    def __init__(self) -> None:
        self._zip = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True)

    def pack(self, row: DatasetRow) -> tuple[bytes, int]:
        """The frame, and how many bytes it unpacks to. Raises UnicodeEncodeError."""
        parts = [_small(row), row.messages.encode(), row.tools.encode(), *_columns(row.tokens)]
        whole = b"".join((_HEAD.pack(*map(len, parts)), *parts))
        return self._zip.compress(whole), len(whole)


def _small(row: DatasetRow) -> bytes:
    """The fields but for the big ones; of the tokens, what is no column."""
    fields = row.model_dump_json(exclude=_BIG).encode()
    if row.tokens is None:
        return fields
    rest = row.tokens.model_dump_json(include={"versions", "answers"}).encode()
    return b'%s,"tokens":%s}' % (fields[:-1], rest)


def _columns(tokens: RecordedTokens | None) -> tuple[bytes, bytes, bytes]:
    if tokens is None:
        return b"", b"", b""
    return (
        array("q", tokens.token_ids).tobytes(),
        bytes(tokens.mask),
        array("d", tokens.logprobs).tobytes(),
    )


class Spool:
    """Frames in a file, fetched by place. Closed when it is let go of."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._unzip = zstandard.ZstdDecompressor()

    def row(self, offset: int, length: int) -> DatasetRow:
        """The row whose frame lies there. Raises DatasetCorrupt."""
        try:
            whole = self._unzip.decompress(os.pread(self._fd, length, offset))
            return _row(whole)
        except (zstandard.ZstdError, struct.error, ValueError) as error:
            raise DatasetCorrupt(
                f"the rows kept here were damaged: {error}",
                path=str(self._path),
                hint=f"remove {self._path.parent}, and start the mix anew",
            ) from None

    def close(self) -> None:
        """Give the descriptor back."""
        os.close(self._fd)


def _row(whole: bytes) -> DatasetRow:
    sizes = _HEAD.unpack_from(whole)
    at, parts = _HEAD.size, []
    for size in sizes:
        parts.append(whole[at : at + size])
        at += size
    small, messages, tools, *columns = parts
    fields = orjson.loads(small)
    if fields.get("tokens") is not None:
        ids, logprobs = array("q", columns[0]), array("d", columns[2])
        fields["tokens"] |= {"token_ids": ids, "mask": tuple(columns[1]), "logprobs": logprobs}
    return DatasetRow.model_validate(fields | {"messages": messages.decode(), "tools": tools.decode()})
