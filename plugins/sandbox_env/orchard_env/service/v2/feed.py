"""Input on its way to a command, at the command's own pace."""

from __future__ import annotations

import asyncio
from typing import Any

from orchard_core import AgentClient, StdinClosed, understood
from orchard_env.service.passthrough_body import Incoming

_PIECE = 256 * 1024
_WAITING = 8
_DAY_S = 86400.0
_INPUT_MAX = 1 << 62


async def feed_body(
    client: AgentClient, exec_id: str, incoming: Incoming, offset: int | None, *, eof: bool
) -> int:
    """A request's body as input, and how much of the input has arrived then. In pieces: one that waits for
    the command to read it can be sent again."""
    held, received = bytearray(), -1
    async for arrived in incoming.pieces():
        held += arrived
        while len(held) >= _PIECE:
            received = await post(client, exec_id, bytes(held[:_PIECE]), offset)
            offset = None if offset is None else offset + _PIECE
            del held[:_PIECE]
    if held or eof or received < 0:
        return await post(client, exec_id, bytes(held), offset, eof=eof)
    return received


async def post(
    client: AgentClient, exec_id: str, piece: bytes, offset: int | None, *, eof: bool = False
) -> int:
    """One piece of input; how much has arrived then. Raises StdinClosed, ExecError for a gap."""
    query = {"offset": offset, "eof": 1 if eof else None}
    said = await client.link.ask(
        "POST", f"/v1/exec/{exec_id}/stdin", query, piece, repeat=offset is not None, patience=_DAY_S
    )
    return _received(said)


def _received(said: Any) -> int:
    with understood():
        return min(max(0, int(said["stdin_received"])), _INPUT_MAX)


class Feed:
    """Input that comes in pieces, while signals go past it."""

    def __init__(self, client: AgentClient, exec_id: str) -> None:
        self._client = client
        self._exec_id = exec_id
        self._queue: asyncio.Queue[bytes | None] = asyncio.Queue(_WAITING)

    async def add(self, piece: bytes | None) -> None:
        """A piece, or None for the end of the input. Waits while too many wait."""
        if piece is None:
            await self._queue.put(None)
        for start in range(0, len(piece or b""), _PIECE):
            assert piece is not None
            await self._queue.put(piece[start : start + _PIECE])

    async def run(self) -> None:
        """Hand everything on, for ever. A command that stops reading is no error, as in a shell's pipe."""
        status, _ = await self._client.process(self._exec_id).status()
        offset = _received({"stdin_received": 0, **status})
        while True:
            piece = await self._queue.get()
            try:
                if piece is None:
                    await post(self._client, self._exec_id, b"", offset, eof=True)
                else:
                    offset = await post(self._client, self._exec_id, piece, offset)
            except StdinClosed:
                continue
