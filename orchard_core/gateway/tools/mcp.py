"""The methods of an MCP server that has tools and nothing else."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import JsonValue

from orchard_core.gateway.tools.jsonrpc import CANCELLED, INVALID_PARAMS, METHOD_NOT_FOUND, Message, RpcFault
from orchard_core.gateway.tools.peers import Peer
from orchard_core.gateway.tools.revision import KNOWN, is_stateless, marked, negotiated
from orchard_core.gateway.tools.served import ServedTools, settled
from orchard_core.gateway.tools.wire import content_json

SERVER = "orchard"
"""The server's name. Harnesses put it before the tools' names, as in `mcp__orchard__NAME`."""

Result = Mapping[str, JsonValue]
_CAPABILITIES: JsonValue = {"tools": {"listChanged": False}}


async def answered(served: ServedTools, message: Message, peer: Peer) -> Result:
    """The result of one request. Raises RpcFault."""
    match message.method:
        case "initialize":
            return {
                "protocolVersion": negotiated(message.params.get("protocolVersion")),
                "capabilities": _CAPABILITIES,
                "serverInfo": {"name": SERVER, "version": "1"},
            }
        case "server/discover":
            return marked({"supportedVersions": list(KNOWN), "capabilities": _CAPABILITIES})
        case "ping":
            return {}
        case "tools/list":
            result = _listed(served)
        case "tools/call":
            result = await _called(served, message, peer)
        case other:
            raise RpcFault(
                METHOD_NOT_FOUND, f"there is no method {other[:200]!r}; this server has tools only"
            )
    return marked(result) if is_stateless(message) else result


def noted(message: Message, peer: Peer) -> None:
    """A notification. Those that are not known mean nothing here."""
    if message.method == "notifications/cancelled":
        peer.cancel(message.params.get("requestId"))


def _listed(served: ServedTools) -> Result:
    tools: list[JsonValue] = [
        {"name": tool.name, "description": tool.description, "inputSchema": dict(tool.parameters)}
        for tool in served.tools
    ]
    return {"tools": tools}


async def _called(served: ServedTools, message: Message, peer: Peer) -> Result:
    name, arguments = message.params.get("name"), message.params.get("arguments")
    if not isinstance(name, str) or not served.knows(name):
        known = ", ".join(tool.name for tool in served.tools) or "none"
        raise RpcFault(INVALID_PARAMS, f"there is no tool {str(name)[:200]!r}; the task brings: {known}")
    if arguments is not None and not isinstance(arguments, dict):
        raise RpcFault(INVALID_PARAMS, f"the arguments of {name} are to be an object")
    assert message.id is not None
    work = peer.calls[message.id] = served.start(name, arguments or {})
    try:
        result = await settled(work)
    finally:
        peer.calls.pop(message.id, None)
    if result is None:
        raise RpcFault(CANCELLED, served.over or "the call was cancelled")
    return {"content": list(content_json(result)), "isError": result.is_error}
