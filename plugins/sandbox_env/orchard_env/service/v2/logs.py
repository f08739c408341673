"""A command's output from a cursor on, and its input."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request

from orchard_core import AgentClient
from orchard_env.service.agent_words import agent_words
from orchard_env.service.http import gone_before_its_end
from orchard_env.service.passthrough_body import ClientLeft, Incoming
from orchard_env.service.seams import Scope
from orchard_env.service.v2.base import EncodingQuery, ExecPath, Routes, SandboxId, Wait
from orchard_env.service.v2.cut import whole_characters
from orchard_env.service.v2.exec import known_exec
from orchard_env.service.v2.feed import feed_body
from orchard_env.service.v2.refusals import REFUSALS
from orchard_env.service.v2.route import JsonRoute
from orchard_env.service.v2.views import written
from orchard_env.types.v2_exec import LogView, StdinView

Stream = Annotated[Literal["stdout", "stderr"], Query(description="Which output.")]
At = Annotated[int, Query(ge=0, lt=1 << 62, description="Where to begin, in bytes from the beginning.")]
Offset = Annotated[
    int | None,
    Query(
        ge=0,
        lt=1 << 62,
        description="Where the body begins in the whole input; what has come before is skipped.",
    ),
]
Eof = Annotated[bool, Query(description="The input ends with this body.")]
_POLL_S = 30.0


class LogRoutes(Routes):
    """`/v2/sandboxes/{sandbox_id}/execs/{exec_id}/logs` and `/stdin`."""

    def router(self) -> APIRouter:
        """The routes."""
        router = APIRouter(route_class=JsonRoute, tags=["commands"])
        one = "/sandboxes/{sandbox_id}/execs/{exec_id}"
        router.add_api_route(
            f"{one}/logs", self.logs, methods=["GET"], response_model=LogView, responses=REFUSALS
        )
        router.add_api_route(
            f"{one}/stdin",
            self.stdin,
            methods=["POST"],
            response_model=StdinView,
            responses=REFUSALS,
            openapi_extra={"requestBody": _RAW},
        )
        return router

    async def logs(
        self,
        request: Request,
        sandbox_id: SandboxId,
        exec_id: ExecPath,
        stream: Stream = "stdout",
        cursor: At = 0,
        wait: Wait = 0.0,
        encoding: EncodingQuery = "utf-8",
    ) -> LogView:
        """What a command wrote from `cursor` on, at once when there is any, else after at most `wait`
        seconds. Ask again with `next`. As text, a piece ends with a whole character."""
        entry = await self._entry(request, Scope.READ)
        until = time.monotonic() + self._bounded(wait)
        async with known_exec(entry, exec_id) as client:
            piece = await read_log(client, exec_id, stream, cursor, until, text=encoding == "utf-8")
        return piece_view(piece, stream, encoding)

    async def stdin(
        self,
        request: Request,
        sandbox_id: SandboxId,
        exec_id: ExecPath,
        offset: Offset = None,
        eof: Eof = False,
    ) -> StdinView:
        """Feed the input of a command that was started with `stdin_stream`, at its own pace. The body is raw
        bytes. With `offset` it may be sent again."""
        entry = await self._entry(request, Scope.USE)
        incoming = Incoming(request.scope, request.receive)
        async with known_exec(entry, exec_id) as client:
            await client.run_status(exec_id)
        try:
            async with entry.lent() as client:
                with agent_words():
                    received = await feed_body(client, exec_id, incoming, offset, eof=eof)
        except ClientLeft:
            raise gone_before_its_end() from None
        return StdinView(received=received)


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A piece of an output."""

    data: bytes
    """The bytes; empty when none came in time."""
    start: int
    """Where they begin in the whole output."""
    size: int
    """Bytes written so far."""
    ended: bool
    """No more follow."""


async def read_log(
    client: AgentClient,
    exec_id: str,
    stream: Literal["stdout", "stderr"],
    cursor: int,
    until: float,
    *,
    text: bool,
) -> Piece:
    """The next piece; an empty one when none came in time. With `text` it ends with a whole character."""
    held, start = b"", cursor
    while True:
        wait_s = max(0.0, min(_POLL_S, until - time.monotonic()))
        said = await client.run_output(exec_id, stream, cursor=cursor + len(held), wait_s=wait_s)
        if not held or said.start != cursor + len(held):
            held, start = b"", said.start if said.data else cursor
        data = held + said.data
        ended = said.ended
        keep = len(data) if ended or not text else whole_characters(data)
        if keep or ended or time.monotonic() >= until:
            return Piece(data=data[:keep], start=start, size=said.size, ended=ended)
        held, cursor = data, start


def piece_view(
    piece: Piece, stream: Literal["stdout", "stderr"], encoding: Literal["utf-8", "base64"]
) -> LogView:
    """As it is told."""
    return LogView(
        stream=stream,
        cursor=piece.start,
        next=piece.start + len(piece.data),
        size=piece.size,
        ended=piece.ended,
        encoding=encoding,
        data=written(piece.data, encoding),
    )


_RAW = {
    "required": True,
    "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
}
