"""Reading one proxy request from a hostile client."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from orchard_core.errors import OrchardError

_HEAD_MAX = 64 * 1024
_TOKEN = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""A header's name, RFC 9110 section 5.6.2."""
_DROPPED = (b"connection", b"host", b"keep-alive", b"proxy-", b"te", b"upgrade")


class RequestRefused(OrchardError):
    """The proxy answers with `status` and says why."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyRequest:
    """Where to, and what to say first."""

    host: str
    """Name or address as the client wrote it."""
    port: int
    """TCP port."""
    head: bytes
    """The rewritten request head; empty for CONNECT."""


async def read_request(reader: asyncio.StreamReader) -> ProxyRequest:
    """The next request. Raises RequestRefused for what is not a proxy request."""
    try:
        raw = await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError:
        raise RequestRefused(431, f"the request's head has more than {_HEAD_MAX} bytes") from None
    lines = raw[:-4].split(b"\r\n")
    _demand_plain(lines)
    parts = lines[0].split(b" ")
    if len(parts) != 3 or not parts[2].startswith(b"HTTP/1."):
        raise RequestRefused(400, "not an HTTP/1 request")
    method, target = parts[0], parts[1].decode("latin-1")
    if method == b"CONNECT":
        host, port = _authority("//" + target, None)
        return ProxyRequest(host=host, port=port, head=b"")
    if not target.lower().startswith("http://"):
        raise RequestRefused(400, "this is a proxy: use CONNECT, or an absolute http:// address")
    host, port = _authority(target, 80)
    return ProxyRequest(host=host, port=port, head=_rewritten(method, target, lines[1:]))


def _demand_plain(lines: list[bytes]) -> None:
    """Refuse whatever two servers may read differently: with it a request could hide within a request."""
    if any(mark in line for line in lines for mark in (b"\r", b"\n", b"\0")):
        raise RequestRefused(400, "the request's head holds a bare CR, LF or NUL")
    for line in lines[1:]:
        name, colon, _ = line.partition(b":")
        if not colon or not _TOKEN.fullmatch(name):
            raise RequestRefused(400, "the request's head holds a line that is no header")


def _authority(url: str, default_port: int | None) -> tuple[str, int]:
    try:
        split = urlsplit(url)
        host, port = split.hostname, split.port or default_port
    except ValueError:
        host = port = None
    if not host or port is None:
        raise RequestRefused(400, "the destination is not host:port")
    return host, port


def _rewritten(method: bytes, target: str, headers: list[bytes]) -> bytes:
    """Origin form; one request a connection, so that each is checked; Host is where we really go."""
    split = urlsplit(target)
    path = (split.path or "/") + (f"?{split.query}" if split.query else "")
    host = split.netloc.rpartition("@")[2]
    kept = [header for header in headers if not header.lower().startswith(_DROPPED)]
    head = [method + b" " + path.encode("latin-1") + b" HTTP/1.1", b"Host: " + host.encode("latin-1")]
    return b"\r\n".join([*head, *kept, b"Connection: close", b"", b""])
