"""Which path of `/tools` does what, and who may ask."""

from __future__ import annotations

from orchard_core.gateway.tools import rest
from orchard_core.gateway.tools.exchange import ToolReply, ToolRequest, refused
from orchard_core.gateway.tools.served import ServedTools

LIST = "/tools"


def serves_tools(path: str) -> bool:
    """The path is one of these."""
    return path == LIST or path.startswith(f"{LIST}/")


async def answer(served: ServedTools, request: ToolRequest) -> ToolReply:
    """One exchange."""
    match request.method, request.path:
        case "GET", "/tools":
            return rest.listed(served)
        case "POST", path if path.startswith(rest.CALL):
            return await rest.called(served, request)
        case method, path:
            return refused(404, f"there is no {method} {path[:200]} here", code="not_found")
