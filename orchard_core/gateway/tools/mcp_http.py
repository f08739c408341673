"""MCP's streamable HTTP transport, answering with JSON only: no stream is ever opened."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import JsonValue

from orchard_core.gateway.json_text import JsonFault, loads
from orchard_core.gateway.tools import jsonrpc, revision
from orchard_core.gateway.tools.exchange import ToolReply, ToolRequest, refused, replied
from orchard_core.gateway.tools.jsonrpc import Message, RpcFault
from orchard_core.gateway.tools.mcp import answered, noted
from orchard_core.gateway.tools.peers import Peer
from orchard_core.gateway.tools.served import ServedTools

PATH = "/tools/mcp"
BATCH_MAX = 64
"""Messages of one batch, which go one after the other."""

_ALLOWED = (b"allow", b"POST, DELETE")
_STATUS = {jsonrpc.METHOD_NOT_FOUND: 404}
"""Of the stateless revision, beside 400; the others answer every request that could be read with 200."""


async def exchange(served: ServedTools, request: ToolRequest) -> ToolReply:
    """One exchange."""
    version = _text(request.headers, b"mcp-protocol-version")
    session = _text(request.headers, b"mcp-session-id")
    peer = served.peers.find(session) if session else Peer()
    if request.method == "DELETE":
        return _good_bye(served, session)
    if request.method != "POST":
        return refused(
            405, "this server opens no stream: POST each message", _ALLOWED, code="method_not_allowed"
        )
    if peer is None:
        return refused(404, "this MCP session is not known any more: initialize again", code="not_found")
    try:
        body = loads(request.body)
    except JsonFault as fault:
        return _failed(None, RpcFault(jsonrpc.PARSE_ERROR, f"the message is not JSON: {fault}"))
    if isinstance(body, list) and version in ("", revision.BATCHED):
        return await _batch(served, body, peer)
    return await _single(served, body, peer, request.headers)


def _good_bye(served: ServedTools, session: str) -> ToolReply:
    if not session:
        return refused(400, "DELETE ends an MCP session: name it in mcp-session-id", code="invalid_request")
    if not served.peers.forget(session):
        return refused(404, "this MCP session is not known", code="not_found")
    return ToolReply(status=204)


async def _single(served: ServedTools, body: object, peer: Peer, headers: Mapping[bytes, bytes]) -> ToolReply:
    try:
        message = jsonrpc.read_message(body)
        if message is None or message.id is None:
            if message is not None:
                noted(message, peer)
            return ToolReply(status=202)
        _check_revision(message, headers)
    except RpcFault as fault:
        return _failed(jsonrpc.id_of(body), fault)
    try:
        result = await answered(served, message, peer)
    except RpcFault as fault:
        status = _STATUS.get(fault.code, 400) if revision.is_stateless(message) else 200
        return _failed(message.id, fault, status=status)
    greeting = message.method == "initialize"
    own = [(b"mcp-session-id", served.peers.greet().encode())] if greeting else []
    return replied(jsonrpc.success(message.id, dict(result)), *own)


def _check_revision(message: Message, headers: Mapping[bytes, bytes]) -> None:
    if revision.is_stateless(message):
        revision.check_stateless(message, headers)
        return
    version = _text(headers, b"mcp-protocol-version")
    if version and version not in revision.KNOWN:
        raise RpcFault(jsonrpc.INVALID_REQUEST, f"MCP revision {version[:40]!r} is not spoken here")


async def _batch(served: ServedTools, bodies: list[object], peer: Peer) -> ToolReply:
    if not 0 < len(bodies) <= BATCH_MAX:
        return _failed(None, RpcFault(jsonrpc.INVALID_REQUEST, f"a batch holds 1 to {BATCH_MAX} messages"))
    answers = [answer for body in bodies if (answer := await _one_of_batch(served, body, peer))]
    return replied(answers) if answers else ToolReply(status=202)


async def _one_of_batch(served: ServedTools, body: object, peer: Peer) -> JsonValue:
    try:
        message = jsonrpc.read_message(body)
        if message is None:
            return None
        if message.id is None:
            noted(message, peer)
            return None
        if message.method == "initialize":
            raise RpcFault(jsonrpc.INVALID_REQUEST, "initialize goes alone")
        return jsonrpc.success(message.id, dict(await answered(served, message, peer)))
    except RpcFault as fault:
        return jsonrpc.failure(jsonrpc.id_of(body), fault)


def _failed(id: jsonrpc.RequestId | None, fault: RpcFault, *, status: int = 400) -> ToolReply:  # noqa: A002
    return replied(jsonrpc.failure(id, fault), status=status)


def _text(headers: Mapping[bytes, bytes], name: bytes) -> str:
    return headers.get(name, b"").decode("latin-1").strip()
