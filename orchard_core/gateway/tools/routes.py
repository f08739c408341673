"""Which path of `/tools` does what, and who may ask."""

from __future__ import annotations

from urllib.parse import urlsplit

from orchard_core.gateway.tools import mcp_http, rest
from orchard_core.gateway.tools.exchange import ToolReply, ToolRequest, refused
from orchard_core.gateway.tools.served import ServedTools

LIST = "/tools"
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


def serves_tools(path: str) -> bool:
    """The path is one of these."""
    return path == LIST or path.startswith(f"{LIST}/")


async def answer(served: ServedTools, request: ToolRequest) -> ToolReply:
    """One exchange."""
    return _stranger(request) or await _routed(served, request)


async def _routed(served: ServedTools, request: ToolRequest) -> ToolReply:
    if request.path == mcp_http.PATH:
        return await mcp_http.exchange(served, request)
    calls = request.path.startswith(rest.CALL)
    if request.path != LIST and not calls:
        where = f"GET {LIST}, POST {rest.CALL}NAME and POST {mcp_http.PATH}"
        return refused(404, f"there is no {request.path[:200]} here; tools have {where}", code="not_found")
    if request.method != ("POST" if calls else "GET"):
        message = f"{request.path[:200]} does not take {request.method}"
        return refused(405, message, (b"allow", b"POST" if calls else b"GET"), code="method_not_allowed")
    return await rest.called(served, request) if calls else rest.listed(served)


def _stranger(request: ToolRequest) -> ToolReply | None:
    """A web page that a browser was led to by a name it made point here, or by a form, is refused."""
    if not _is_loopback(f"//{_header(request, b'host')}"):
        return refused(421, "tools are served under a loopback address only", code="misdirected")
    origin = _header(request, b"origin")
    if origin and not _is_loopback(origin):
        return refused(403, "this origin may not call tools", code="forbidden_origin")
    media = _header(request, b"content-type").partition(";")[0].strip().lower()
    if request.method == "POST" and media != "application/json":
        return refused(415, "the content type is to be application/json", code="unsupported")
    return None


def _is_loopback(url: str) -> bool:
    try:
        return urlsplit(url).hostname in _LOOPBACK
    except ValueError:
        return False


def _header(request: ToolRequest, name: bytes) -> str:
    return request.headers.get(name, b"").decode("latin-1")
