"""Whole directories in and out, as tar streams."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import BinaryIO, cast

from orchard_core.errors import SandboxConnectionLost
from orchard_core.sandbox.agent.link import AgentLink
from orchard_core.sandbox.agent.unpack import TREE_MAX, Links, pack, too_large, unpack
from orchard_core.sandbox.agent.wire import PIECE

_UNPACK_S = 600.0
_FRAME = 64 << 10
"""Headers and padding that even the archive of an empty directory has."""


class AgentTrees:
    """The tree calls. Packing and unpacking on this side run in a thread, behind a socket pair."""

    def __init__(self, link: AgentLink) -> None:
        self._link = link

    async def read_tree(self, path: str) -> AsyncGenerator[bytes, None]:
        """An uncompressed tar of a directory's content. Never unpack it unchecked: see `unpack`."""
        async with self._link.open("GET", "/v1/tree", {"path": path}) as answer:
            async for piece in answer.pieces():
                yield piece

    async def write_tree(self, path: str, data: AsyncIterable[bytes], *, links: Links = "refuse") -> None:
        """Unpack a tar stream inside; the agent checks each member."""
        query = {"path": path, "links": links}
        async with self._link.open("PUT", "/v1/tree", query, data, patience=_UNPACK_S) as answer:
            await answer.read()

    async def upload(self, source: Path, target: str, *, links: Links = "refuse") -> None:
        """Copy a local directory's content into `target`, which is made when missing."""
        ours, theirs = socket.socketpair()
        packing = asyncio.create_task(asyncio.to_thread(_pack_into, source, theirs))
        reader, writer = await asyncio.open_connection(sock=ours, limit=1 << 20)
        try:
            await self.write_tree(target, _until_packed(reader, packing), links=links)
        finally:
            writer.transport.abort()
            await asyncio.gather(packing, return_exceptions=True)

    async def download(
        self, source: str, target: Path, *, links: Links = "refuse", limit: int = TREE_MAX
    ) -> None:
        """Copy a directory's content out, checking every member. Raises FileError when it, or its archive,
        has more than `limit` bytes."""
        ours, theirs = socket.socketpair()
        unpacking = asyncio.create_task(asyncio.to_thread(_unpack_from, theirs, target, links, limit))
        _, writer = await asyncio.open_connection(sock=ours)
        try:
            left = limit + _FRAME
            async with aclosing(self.read_tree(source)) as pieces:
                async for piece in pieces:
                    left -= len(piece)
                    if left < 0:
                        raise too_large(limit)
                    writer.write(piece)
                    await writer.drain()
            writer.write_eof()
        except OSError:
            await unpacking  # it stopped reading: its own error is the reason
            raise
        except BaseException:
            writer.transport.abort()
            await asyncio.gather(unpacking, return_exceptions=True)
            raise
        try:
            await unpacking
        finally:
            writer.close()


async def _until_packed(reader: asyncio.StreamReader, packing: asyncio.Task[None]) -> AsyncIterator[bytes]:
    while piece := await reader.read(PIECE):
        yield piece
    await packing


def _pack_into(source: Path, sock: socket.socket) -> None:
    with sock, sock.makefile("wb", buffering=PIECE) as out:
        pack(source, cast("BinaryIO", out))


def _unpack_from(sock: socket.socket, target: Path, links: Links, limit: int) -> None:
    with sock, sock.makefile("rb", buffering=PIECE) as content:
        try:
            unpack(cast("BinaryIO", content), target, links, limit=limit)
        except ConnectionError as error:
            raise SandboxConnectionLost("the archive was cut") from error
        while content.read(PIECE):  # padding behind the end mark
            pass
