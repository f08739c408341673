"""A file's bytes in pieces, unpacked where it is packed, with bounds on what comes out."""

from __future__ import annotations

import gzip
import re
import stat
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import zstandard

from orchard_core.formats.fault import Fault
from orchard_core.formats.limits import MIB, ROW_BYTES, UNPACKED_FREE, UNPACKED_RATIO

_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_PIECE = 256 * 1024
_ZSTD_LEAST, _ZSTD_MOST = 64, 1024
"""Packed bytes at once: at the most these unpack to 2 and 32 MiB."""


def lines(path: Path) -> Iterator[bytes]:
    """Lines without their ends, blank ones left out. Raises Fault where one cannot be had, and OSError."""
    held = bytearray()
    for piece in pieces(path):
        start = 0 if held else _blank(piece, 0)
        while (end := piece.find(b"\n", start)) >= 0:
            line = bytes(held + piece[start:end]).strip(b" \t\r")
            held.clear()
            start = _blank(piece, end + 1)
            if line:
                yield line
        held += piece[start:]
        _bound(len(held))
    line = bytes(held).strip(b" \t\r")
    if line:
        yield line


_BLANKS = re.compile(rb"[ \t\r\n]*")


def _blank(piece: bytes, at: int) -> int:
    """Where the next line begins, past blank ones: a bomb may have millions of them."""
    found = _BLANKS.match(piece, at)
    return found.end() if found else at


def whole(path: Path) -> bytes:
    """All of a file that holds one record. Raises Fault and OSError."""
    held = bytearray()
    for piece in pieces(path):
        held += piece
        _bound(len(held))
    return bytes(held)


def head(path: Path, size: int = 65536) -> bytes:
    """The first bytes, unpacked; empty for what cannot be read."""
    held = bytearray()
    try:
        for piece in pieces(path):
            held += piece
            if len(held) >= size:
                break
    except (Fault, OSError):
        pass
    return bytes(held[:size])


def pieces(path: Path) -> Iterator[bytes]:
    """Unpacked bytes, a mark of the byte order at the start left out. Raises Fault and OSError."""
    told = path.stat()
    if not stat.S_ISREG(told.st_mode):  # opening a pipe waits for its writer, and a device has no end
        raise Fault("it is a pipe or a device, and no file")
    packed = told.st_size
    with path.open("rb") as file:
        magic = file.read(4)
        file.seek(0)
        if magic.startswith(_GZIP):
            unpacked = _gzipped(file)
        elif magic == _ZSTD:
            unpacked = _zstandard(file)
        else:
            unpacked = iter(lambda: file.read(_PIECE), b"")
        total = 0
        for piece in unpacked:
            plain = piece.removeprefix(b"\xef\xbb\xbf") if total == 0 else piece
            total += len(piece)
            if total > UNPACKED_FREE and total > UNPACKED_RATIO * packed:
                raise Fault(f"it unpacks to more than {UNPACKED_RATIO} times its size, as no text does")
            yield plain


def _bound(size: int) -> None:
    if size > ROW_BYTES:
        raise Fault(f"this row has more than {ROW_BYTES // MIB} MiB")


def _gzipped(file: BinaryIO) -> Iterator[bytes]:
    try:
        with gzip.GzipFile(fileobj=file) as opened:
            while piece := opened.read(_PIECE):
                yield piece
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise Fault(f"the packed file is cut or damaged: {error}") from None


def _zstandard(file: BinaryIO) -> Iterator[bytes]:
    """The library's own reader takes a cut file for a whole one: each frame's end is looked for here."""
    unpacker = zstandard.ZstdDecompressor(max_window_size=2**27).decompressobj()
    fed = False
    size = _ZSTD_LEAST
    try:
        while packed := file.read(size):
            while packed:
                piece = unpacker.decompress(packed)
                size = _ZSTD_LEAST if len(piece) > _PIECE else min(2 * size, _ZSTD_MOST)
                yield piece
                fed = not unpacker.eof
                packed = unpacker.unused_data if unpacker.eof else b""
                if unpacker.eof:
                    unpacker = zstandard.ZstdDecompressor(max_window_size=2**27).decompressobj()
    except zstandard.ZstdError as error:
        raise Fault(f"the packed file is damaged: {error}") from None
    if fed:
        raise Fault("the packed file is cut")
