"""Files of a sandbox: streamed where the service can, whole as base64 where it cannot."""

from __future__ import annotations

import asyncio
import base64
import binascii
import os
import secrets
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote

from orchard_core import FileError, FileMissing, OrchardError
from orchard_env.client.answers import FileInfo, Uploaded
from orchard_env.client.http import ServiceHttp

_PIECE = 1 << 20
_TRANSFER_S = 24 * 3600.0


class SandboxFiles:
    """The file calls of one sandbox."""

    def __init__(self, http: ServiceHttp, sandbox_id: str) -> None:
        self._http = http
        self._v1 = f"/sandboxes/{quote(sandbox_id, safe='')}/files"
        self._streamed = f"/v2/sandboxes/{quote(sandbox_id, safe='')}/agent/v1/files"

    async def upload(self, source: Path, target: str, *, streams: bool) -> Uploaded:
        """A local file, whole or not at all; with `streams` in bounded memory. Raises FileMissing for a
        source that is not there, and as the service says."""
        if not (streams and target.startswith("/")):
            return await self.put(await asyncio.to_thread(_read, source), target)
        size = (await asyncio.to_thread(_stat, source)).st_size

        async def once() -> None:
            with await asyncio.to_thread(_open, source) as content:
                async with self._http.open(
                    "PUT",
                    self._streamed,
                    params={"path": target},
                    data=_pieces(content, size),
                    headers={"Content-Length": str(size), "Content-Type": "application/octet-stream"},
                    timeout_s=_TRANSFER_S,
                    missing=FileMissing,
                ) as answer:
                    await answer.read()

        await self._http.repeated(once, repeat=True)
        return {"success": True, "path": target, "size": size}

    async def put(self, content: bytes, target: str) -> Uploaded:
        """Bytes that are in memory already, as a file."""
        body = {"path": target, "content": base64.b64encode(content).decode()}
        said = await self._http.json("POST", self._v1, body=body, repeat=True, missing=FileMissing)
        size = said.get("size")
        return {
            "success": bool(said.get("success", True)),
            "path": str(said.get("path", target)),
            "size": size if isinstance(size, int) else len(content),
        }

    async def download(self, source: str, target: Path, *, streams: bool) -> int:
        """Size of what was copied into a local file, whole or not at all; with `streams` in bounded memory.
        Raises FileMissing, and as the service says."""
        if not (streams and source.startswith("/")):
            content = await self.get(source)
            await asyncio.to_thread(_write, target, content)
            return len(content)

        async def once() -> int:
            part = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
            try:
                size = await self._into(source, part)
                await asyncio.to_thread(os.replace, part, target)
            except BaseException:
                with suppress(FileNotFoundError):
                    part.unlink()
                raise
            return size

        return await self._http.repeated(once, repeat=True)

    async def _into(self, source: str, part: Path) -> int:
        size = 0
        async with self._http.open(
            "GET", self._streamed, params={"path": source}, timeout_s=_TRANSFER_S, missing=FileMissing
        ) as answer:
            with await asyncio.to_thread(part.open, "wb") as out:
                async for piece in answer.content.iter_chunked(_PIECE):
                    await asyncio.to_thread(out.write, piece)
                    size += len(piece)
        return size

    async def get(self, source: str) -> bytes:
        """A whole file. Raises FileMissing, and FileError when the answer carries none."""
        said = await self._http.json(
            "GET", self._v1, params={"path": source}, repeat=True, missing=FileMissing
        )
        try:
            return base64.b64decode(said["content"], validate=True)
        except (KeyError, TypeError, binascii.Error) as error:
            raise FileError(
                f"the service's answer holds no content of {source}",
                hint="see that the URL is a sandbox service's",
            ) from error

    async def list(self, path: str) -> list[FileInfo]:
        """Entries of a directory. Raises FileMissing, NotADirectory."""
        said = await self._http.json(
            "GET", f"{self._v1}/list", params={"path": path}, repeat=True, missing=FileMissing
        )
        files: list[FileInfo] = said.get("files") or []
        return files


async def _pieces(content: BinaryIO, size: int) -> AsyncIterator[bytes]:
    """As many bytes as were announced: a file that grows meanwhile is sent as it was."""
    left = size
    while left:
        piece = await asyncio.to_thread(content.read, min(left, _PIECE))
        if not piece:
            raise FileError(
                "the file became shorter while it was uploaded", hint="upload what nobody writes to meanwhile"
            )
        left -= len(piece)
        yield piece


def _open(source: Path) -> BinaryIO:
    try:
        return source.open("rb")
    except OSError as error:
        raise _unreadable(source, error) from error


def _read(source: Path) -> bytes:
    with _open(source) as content:
        return content.read()


def _stat(source: Path) -> os.stat_result:
    try:
        return source.stat()
    except OSError as error:
        raise _unreadable(source, error) from error


def _unreadable(source: Path, error: OSError) -> OrchardError:
    kind = FileMissing if isinstance(error, FileNotFoundError) else FileError
    return kind(f"cannot read {source} on this machine: {error}", hint="give the path of a file")


def _write(target: Path, content: bytes) -> None:
    part = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        part.write_bytes(content)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
