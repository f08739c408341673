"""Files and directories inside, streamed."""

from __future__ import annotations

import builtins
import json
from collections.abc import AsyncGenerator, AsyncIterable
from contextlib import aclosing
from typing import Any, Literal, cast

from orchard_core.errors import FileError, NotAnAgent, RangeRefused
from orchard_core.sandbox.agent.link import CALL_S, JSON_MAX, AgentLink
from orchard_core.sandbox.agent.spec import text_of
from orchard_core.types.sandbox import FileEntry

_SLOW_S = 600.0  # a removal or a copy of a huge tree
_KINDS = {"file": "file", "directory": "directory", "symlink": "symlink"}


class AgentFiles:
    """The file calls. Paths are absolute; bytes that are not UTF-8 go as surrogate escapes."""

    def __init__(self, link: AgentLink) -> None:
        self._link = link

    async def read(
        self, path: str, *, offset: int = 0, length: int | None = None
    ) -> AsyncGenerator[bytes, None]:
        """Stream a file, or `length` bytes of it from `offset`; nothing when it ends before."""
        if length == 0:
            return
        headers = {}
        if offset or length is not None:
            headers["Range"] = f"bytes={offset}-{'' if length is None else offset + length - 1}"
        try:
            async with self._link.open("GET", "/v1/files", {"path": path}, headers=headers) as answer:
                async for piece in answer.pieces():
                    yield piece
        except RangeRefused:
            return

    async def read_bytes(self, path: str, *, limit: int = 64 << 20) -> bytes:
        """A whole file. Raises FileError when it has more than `limit` bytes."""
        content = bytearray()
        async with aclosing(self.read(path)) as pieces:
            async for piece in pieces:
                content += piece
                if len(content) > limit:
                    raise FileError(f"{path} has more than {limit} bytes", hint="stream it with read()")
        return bytes(content)

    async def write(
        self,
        path: str,
        data: bytes | AsyncIterable[bytes],
        *,
        mode: int | None = None,
        user: str | None = None,
        parents: bool = True,
        fsync: bool = False,
    ) -> None:
        """Write a file whole or not at all. Without `mode` an old file keeps its own, a new one has 644."""
        query = {
            "path": path,
            "mode": None if mode is None else f"{mode:o}",
            "user": user,
            "parents": int(parents),
            "fsync": int(fsync),
        }
        if isinstance(data, bytes):
            await self._link.call("PUT", "/v1/files", query, data, repeat=True, patience=2 * CALL_S)
            return
        async with self._link.open("PUT", "/v1/files", query, data, patience=2 * CALL_S) as answer:
            await answer.read()

    async def list(self, path: str) -> builtins.list[FileEntry]:
        """Entries of a directory, sorted by name. Raises FileError when their description has more than
        64 MiB, which about 300,000 entries have."""
        _, body = await self._link.call("GET", "/v1/files/list", {"path": path}, repeat=True)
        return sorted((_entry(line) for line in body.splitlines()), key=lambda entry: entry.name)

    async def stat(self, path: str, *, follow: bool = False) -> FileEntry:
        """One entry; a link itself unless `follow`."""
        query = {"path": path, "follow": int(follow)}
        _, body = await self._link.call("GET", "/v1/files/stat", query, repeat=True, limit=JSON_MAX)
        return _entry(body)

    async def mkdir(self, path: str, *, mode: int | None = None, parents: bool = True) -> None:
        """Make a directory; with `parents`, those that are missing too, and one that exists is fine."""
        query = {"path": path, "mode": None if mode is None else f"{mode:o}", "parents": int(parents)}
        await self._link.call("POST", "/v1/files/mkdir", query, repeat=parents)

    async def move(self, source: str, target: str, *, overwrite: bool = False) -> None:
        """Rename, or copy where the system cannot rename. Raises FileExists without `overwrite`."""
        query = {"from": source, "to": target, "overwrite": int(overwrite)}
        await self._link.call("POST", "/v1/files/move", query, patience=_SLOW_S)

    async def remove(self, path: str, *, recursive: bool = True, missing_ok: bool = True) -> None:
        """Remove a file, link or tree; links are never followed."""
        query = {"path": path, "recursive": int(recursive), "missing_ok": int(missing_ok)}
        await self._link.call("DELETE", "/v1/files", query, repeat=missing_ok, patience=_SLOW_S)


def _entry(line: bytes) -> FileEntry:
    try:
        return _described(json.loads(line))
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise NotAnAgent(f"no agent describes a file so: {line[:80]!r}") from error


def _described(said: dict[str, Any]) -> FileEntry:
    kind = cast("Literal['file', 'directory', 'symlink', 'other']", _KINDS.get(said["type"], "other"))
    return FileEntry(
        name=text_of(said["name"]),
        path=text_of(said["path"]),
        kind=kind,
        size=int(said["size"]) if kind == "file" else 0,
        mode=int(said["mode"]),
        modified=float(said["mtime"]),
        link=text_of(said.get("target")) if kind == "symlink" else None,
        broken=bool(said.get("broken", False)),
    )
