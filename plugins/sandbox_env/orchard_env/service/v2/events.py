"""What happens to a command, in the order in which it is seen, from wherever a reader left off."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Literal

import orjson

from orchard_core import AgentClient
from orchard_env.service.faults import RequestInvalid
from orchard_env.service.v2.exec import settled
from orchard_env.service.v2.logs import Piece, read_log
from orchard_env.service.v2.views import exec_view, written
from orchard_env.types.v2_exec import Encoding

_QUIET_S = 15.0
_WAITING = 4
_LAST = re.compile(r"([0-9]{1,18})-([0-9]{1,18})")
_STREAMS: tuple[Literal["stdout"], Literal["stderr"]] = ("stdout", "stderr")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursors:
    """How much of either output a reader has."""

    stdout: int = 0
    """Bytes."""
    stderr: int = 0
    """Bytes."""

    def __str__(self) -> str:
        return f"{self.stdout}-{self.stderr}"

    @classmethod
    def parse(cls, text: str | None) -> Cursors:
        """Read an event's id. Raises RequestInvalid for what is none."""
        if not text:
            return cls()
        found = _LAST.fullmatch(text)
        if found is None:
            raise RequestInvalid(
                f"Last-Event-ID {text[:60]!r} is no event's", hint="send the `id` of the last event, or none"
            )
        return cls(stdout=int(found[1]), stderr=int(found[2]))


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecEvent:
    """One thing that happened."""

    kind: Literal["started", "stdout", "stderr", "exit", "quiet"]
    """`quiet`: nothing did for a while."""
    id: str
    """The cursors behind it: a reader that comes back with it misses nothing and gets nothing twice."""
    data: bytes
    """JSON."""


async def exec_events(
    client: AgentClient, sandbox_id: str, exec_id: str, *, since: Cursors, encoding: Encoding
) -> AsyncGenerator[ExecEvent, None]:
    """Until the command has ended and all was told. Raises ExecError when there is none of that id."""
    yield ExecEvent(
        kind="started", id=str(since), data=orjson.dumps({"id": exec_id, "sandbox_id": sandbox_id})
    )
    queue: asyncio.Queue[tuple[Literal["stdout", "stderr"], Piece] | BaseException] = asyncio.Queue(_WAITING)
    at = {"stdout": since.stdout, "stderr": since.stderr}
    readers = [
        asyncio.create_task(_read(client, exec_id, stream, at[stream], queue, text=encoding == "utf-8"))
        for stream in _STREAMS
    ]
    try:
        open_streams = len(readers)
        while open_streams:
            try:
                async with asyncio.timeout(_QUIET_S):
                    said = await queue.get()
            except TimeoutError:
                yield ExecEvent(kind="quiet", id="", data=b"{}")
                continue
            if isinstance(said, BaseException):
                raise said
            stream, piece = said
            at[stream] = piece.start + len(piece.data)
            open_streams -= piece.ended
            if piece.data:
                yield _output(stream, piece, Cursors(**at), encoding)
        told = await settled(client, await client.run_status(exec_id), time.monotonic() + _QUIET_S)
        view = exec_view(sandbox_id, told, encoding=encoding, output=False)
        yield ExecEvent(kind="exit", id=str(Cursors(**at)), data=view.model_dump_json().encode())
    finally:
        for reader in readers:
            reader.cancel()
        await asyncio.gather(*readers, return_exceptions=True)


async def _read(
    client: AgentClient,
    exec_id: str,
    stream: Literal["stdout", "stderr"],
    cursor: int,
    queue: asyncio.Queue[tuple[Literal["stdout", "stderr"], Piece] | BaseException],
    *,
    text: bool,
) -> None:
    try:
        while True:
            piece = await read_log(client, exec_id, stream, cursor, time.monotonic() + 60.0, text=text)
            cursor = piece.start + len(piece.data)
            if piece.data or piece.ended:
                await queue.put((stream, piece))
            if piece.ended:
                return
    except asyncio.CancelledError:
        raise
    except BaseException as error:  # noqa: BLE001 - handed to who reads the events, whatever it is
        await queue.put(error)


def _output(
    stream: Literal["stdout", "stderr"], piece: Piece, behind: Cursors, encoding: Encoding
) -> ExecEvent:
    said = {
        "data": written(piece.data, encoding),
        "encoding": encoding,
        "cursor": piece.start,
        "next": piece.start + len(piece.data),
    }
    return ExecEvent(kind=stream, id=str(behind), data=orjson.dumps(said))
