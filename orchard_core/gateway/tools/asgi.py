"""Tools over ASGI, once the key has found its session and the body is read."""

from __future__ import annotations

import asyncio
from functools import partial

from orchard_core.gateway import http
from orchard_core.gateway.http import Client, Scope, Send
from orchard_core.gateway.tools.exchange import ToolReply, ToolRequest
from orchard_core.gateway.tools.routes import answer
from orchard_core.gateway.tools.served import ServedTools


async def serve_tools(served: ServedTools, scope: Scope, body: bytes, client: Client, send: Send) -> None:
    """Answer one request. A client that leaves ends its call: nobody could fetch the result later."""
    request = ToolRequest(
        method=scope["method"], path=scope["path"], headers=dict(scope["headers"]), body=body
    )
    work = asyncio.create_task(answer(served, request))
    client.watch(partial(_end, work))
    try:
        await asyncio.wait({work})
    finally:
        client.watch(None)
        work.cancel()
    if not work.cancelled():
        await _send(send, work.result())


def _end(work: asyncio.Task[ToolReply]) -> None:
    work.cancel()


async def _send(send: Send, reply: ToolReply) -> None:
    if reply.body:
        await http.send_json(send, reply.status, reply.body, reply.headers)
        return
    headers = [(b"content-length", b"0"), *reply.headers]
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    await send({"type": "http.response.body", "body": b""})
