"""Reading and changing files of a sandbox for a model: bounded, byte-exact, with errors that help."""

from __future__ import annotations

import posixpath
import re
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass

from orchard_core import FileEntry, FileMissing, Sandbox
from orchard_harness_react.content import cut

_EDIT_LIMIT = 16 << 20
"""The largest file that is edited in memory, bytes."""
_BYTES_PER_CHARACTER = 4
"""At most, in UTF-8."""
_MARKER = 80
"""Room for the words that stand where lines were cut off, characters."""
_LINKS = 16
"""Symbolic links followed in a row."""
_LINE = re.compile(rb"[^\n]*\n|[^\n]+")


class Refused(Exception):
    """A wish that cannot be granted; the message is for the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """Files of one sandbox."""

    sandbox: Sandbox
    """Where they are."""

    async def whole(self, path: str, limit: int) -> str:
        """The file's text, cut to `limit` characters; memory is bounded whatever its size."""
        real, entry = await self._readable(path)
        data = await self._ends(real, entry.size, limit * _BYTES_PER_CHARACTER)
        return cut(_text(path, data), limit, f"{max(entry.size, len(data)):,} bytes") or "(empty)"

    async def lines(self, path: str, first: int, count: int | None, limit: int) -> str:
        """`count` lines (None: all) from line `first`, as far as `limit` characters go."""
        real, _ = await self._readable(path)
        data = await self._some(real, first, count, limit * _BYTES_PER_CHARACTER)
        if data is None:
            raise Refused(f"{path} has no line {first:,}.")
        text = _text(path, data)
        if len(text) <= limit:
            return text
        shown = text[: limit - _MARKER]
        return shown + f"\n[... cut off in line {first + shown.count(chr(10)):,}: ask for fewer lines ...]"

    async def write(self, path: str, content: str) -> str:
        """Write a file whole; an existing one keeps its permission bits."""
        real, entry = await self._followed(path)
        data = content.encode()
        await self.sandbox.write(real, data, mode=entry.mode & 0o7777 if entry else 0o644)
        return f"{'Replaced' if entry else 'Wrote'} {path}: {len(data):,} bytes."

    async def edit(self, path: str, *, old: str, new: str, everywhere: bool) -> str:
        """Replace `old` by `new`. The rest stays as it is, byte for byte, whatever its encoding."""
        real, entry = await self._readable(path)
        data = await self.sandbox.read_bytes(real, limit=_EDIT_LIMIT)
        before, after = _line_ends(data, old.encode(), new.encode())
        found = data.count(before)
        if found == 0:
            raise Refused(f"`old` does not occur in {path}.{_nearest(data, before)}")
        if found > 1 and not everywhere:
            raise Refused(
                f"`old` occurs {found} times in {path}, in lines {_places(data, before)}. "
                "Give more of what stands around it, or set all to true."
            )
        await self.sandbox.write(real, data.replace(before, after), mode=entry.mode & 0o7777)
        return f"Replaced {found} occurrence{'s' if found > 1 else ''} in {path}."

    async def _readable(self, path: str) -> tuple[str, FileEntry]:
        """A regular file's real path. A pipe or device would never end."""
        real, entry = await self._followed(path)
        if entry is None:
            raise Refused(f"{path} does not exist.")
        if entry.kind == "directory":
            raise Refused(f"{path} is a directory. List it with a command, such as `ls -la`.")
        if entry.kind != "file":
            raise Refused(f"{path} is not a regular file.")
        return real, entry

    async def _followed(self, path: str) -> tuple[str, FileEntry | None]:
        """Where links lead, so that writing to a link changes its target and leaves the link."""
        for _ in range(_LINKS):
            try:
                entry = await self.sandbox.stat(path)
            except FileMissing:
                return path, None
            if entry.kind != "symlink" or entry.link is None:
                return path, entry
            path = posixpath.normpath(posixpath.join(posixpath.dirname(path), entry.link))
        raise Refused(f"{path} is a link that leads in a circle.")

    async def _ends(self, path: str, size: int, limit: int) -> bytes:
        """The whole file, or its first and last `limit` bytes: more than is shown of either."""
        if size <= 2 * limit:
            return b"".join([piece async for piece in self.sandbox.read(path, length=2 * limit)])
        head = [piece async for piece in self.sandbox.read(path, length=limit)]
        tail = [piece async for piece in self.sandbox.read(path, offset=size - limit, length=limit)]
        return b"".join([*head, *tail])

    async def _some(self, path: str, first: int, count: int | None, limit: int) -> bytes | None:
        """Lines from `first`; reading stops after `count` of them or `limit` bytes. None: no such line."""
        line, kept = 1, bytearray()
        async with aclosing(self._pieces(path)) as pieces:
            async for piece in pieces:
                kept += piece[: limit + 1 - len(kept)] if line >= first else b""
                line += piece.endswith(b"\n")
                if (count is not None and line >= first + count) or len(kept) > limit:
                    break
        return bytes(kept) if kept else None

    async def _pieces(self, path: str) -> AsyncGenerator[bytes, None]:
        """The file in pieces that hold no newline but at their end."""
        async for chunk in self.sandbox.read(path):
            for piece in _LINE.findall(chunk):
                yield piece


def _text(path: str, data: bytes) -> str:
    if b"\0" in data:
        raise Refused(f"{path} is not text. Look at it with a command, such as `file` or `xxd`.")
    return data.decode("utf-8", "replace")


def _line_ends(data: bytes, old: bytes, new: bytes) -> tuple[bytes, bytes]:
    """Old and new text with CRLF line ends where the file has them and the model wrote LF."""
    if old in data or b"\r\n" not in data:
        return old, new
    return tuple(text.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n") for text in (old, new))  # type: ignore[return-value]


def _places(data: bytes, piece: bytes) -> str:
    """Numbers of the first lines in which the piece begins."""
    numbers: list[str] = []
    at = data.find(piece)
    while at >= 0 and len(numbers) < 10:
        numbers.append(str(data.count(b"\n", 0, at) + 1))
        at = data.find(piece, at + len(piece))
    return ", ".join(numbers) + (", ..." if at >= 0 else "")


def _nearest(data: bytes, piece: bytes) -> str:
    """A hint when the text is there but for its blanks."""
    first = next((line.strip() for line in piece.splitlines() if line.strip()), b"")
    at = data.find(first) if first else -1
    if at < 0:
        return " Read the file again and copy the text from it."
    number = data.count(b"\n", 0, at) + 1
    return f" Its first line occurs in line {number}: compare blanks and what follows."
