"""The agent's calls that turn a connection into a raw one, carried in a WebSocket.

The first frame is text, the agent's answer as JSON: `status`, `headers`, and `body` when it refused, after
which the socket closes. Binary frames then are the bytes of either direction; the text frame `{"eof": true}`
is the end of one direction.
"""

from __future__ import annotations

import json
from contextlib import suppress

from starlette.websockets import WebSocket, WebSocketDisconnect

from orchard_core import AgentClient, OrchardError
from orchard_env.service.faults import ServiceFault
from orchard_env.service.http import caller
from orchard_env.service.passthrough import agent_path, target_of
from orchard_env.service.passthrough_calls import RAW, AgentCall, find_upgrade
from orchard_env.service.problems import problem
from orchard_env.service.pump import PIECE, Pump
from orchard_env.service.reach import reach
from orchard_env.service.services import Services
from orchard_env.service.turns import held_briefly

_REFUSED = 1008


class SocketPassThrough:
    """Serves WebSockets at `/v2/sandboxes/{sandbox_id}/agent/{path}`."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def __call__(self, socket: WebSocket) -> None:
        """The whole life of one socket."""
        path = agent_path(socket.scope)
        await serve_upgrade(self._services, socket, path, socket.scope["query_string"])


async def serve_upgrade(services: Services, socket: WebSocket, path: str, query: bytes) -> None:
    """Carry one connection to the agent of the sandbox that the socket's path names. Path and query are the
    agent's; an error is told in the first frame."""
    socket.scope["query_string"] = b""  # it may hold a key, and the server logs it as it accepts
    await socket.accept()
    try:
        call = find_upgrade(path)
        if call is None:
            raise _no_such_upgrade(path)
        entry = await reach(services, socket, call.scope)
        turn = held_briefly(services.admission.enter(caller(socket, call.scope), call.work))
        async with turn, entry.lent() as client:
            await _carried(client, call, target_of(path, without_key(query)), socket)
    except OrchardError as error:
        response = problem(error, socket.scope.get("request_id", ""))
        await _refuse(socket, response.status_code, {}, bytes(response.body).decode())
    except WebSocketDisconnect:
        return


async def _carried(client: AgentClient, call: AgentCall, target: str, socket: WebSocket) -> None:
    if call.upgrade == RAW:
        await _bare(client, socket)
        return
    answer, streams = await client.link.carry_upgrade(call.method, target, call.upgrade)
    try:
        told = {name: value for name, value in answer.headers.items() if name.startswith("x-orchard-")}
        if answer.status != 101:
            body = (await answer.read(PIECE)).decode("utf-8", "replace")
            await _refuse(socket, answer.status, told, body)
            return
        await socket.send_text(json.dumps({"status": 101, "headers": told}))
        await Pump(socket, streams).run()
    finally:
        streams[1].transport.abort()


async def _bare(client: AgentClient, socket: WebSocket) -> None:
    streams = await client.link.connect()
    try:
        await socket.send_text(json.dumps({"status": 101, "headers": {}}))
        await Pump(socket, streams).run()
    finally:
        streams[1].transport.abort()


async def _refuse(socket: WebSocket, status: int, headers: dict[str, str], body: str) -> None:
    with suppress(RuntimeError, WebSocketDisconnect):
        await socket.send_text(json.dumps({"status": status, "headers": headers, "body": body}))
        await socket.close(_REFUSED)


def without_key(query: bytes) -> bytes:
    """The query without the service's own key, which is none of the agent's business."""
    return b"&".join(part for part in query.split(b"&") if not part.startswith(b"api_key="))


def _no_such_upgrade(path: str) -> ServiceFault:
    return ServiceFault(
        f"no call of the agent that travels in a WebSocket: {path[:200]}",
        status=404,
        hint="/v1/tunnel, /v1/forward/PORT and /v1/exec/ID/pty do",
    )
