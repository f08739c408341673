"""The REST pair beside MCP, for clients of a few lines: list the tools, call one."""

from __future__ import annotations

from orchard_core.gateway.json_text import JsonFault, loads
from orchard_core.gateway.tools.exchange import ToolReply, ToolRequest, refused, replied
from orchard_core.gateway.tools.served import ServedTools, settled
from orchard_core.gateway.tools.wire import content_json

CALL = "/tools/call/"
"""`POST /tools/call/NAME`: a JSON object of arguments in, `{content, is_error, ends}` out."""


def listed(served: ServedTools) -> ToolReply:
    """`GET /tools`."""
    return replied(
        [
            {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
            for tool in served.tools
        ]
    )


async def called(served: ServedTools, request: ToolRequest) -> ToolReply:
    """`POST /tools/call/NAME`."""
    name = request.path.removeprefix(CALL)
    if not served.knows(name):
        known = ", ".join(tool.name for tool in served.tools) or "none"
        return refused(404, f"there is no tool {name[:200]!r}; the task brings: {known}", code="not_found")
    try:
        arguments = loads(request.body)
    except JsonFault as fault:
        return refused(400, f"the arguments cannot be read: {fault}", code="invalid_request")
    if not isinstance(arguments, dict):
        return refused(400, "the arguments are to be a JSON object", code="invalid_request")
    result = await settled(served.start(name, arguments))
    if result is None:
        return refused(403, served.over or "the call was cancelled", code="session_closed")
    return replied({"content": content_json(result), "is_error": result.is_error, "ends": result.ends})
