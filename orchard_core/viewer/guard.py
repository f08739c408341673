"""Who may read: whoever has the link that was printed, in a browser on this machine.

The link's token works once and becomes a cookie that scripts cannot read and other sites cannot send. The
Host header must be an address of ours, or another site could point its own name at this port. Only GET and
HEAD are answered; nothing here changes anything. Each answer forbids frames, sniffing, referrers and caching.
"""

from __future__ import annotations

import hmac
import ipaddress
import secrets
import threading
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any
from urllib.parse import parse_qs

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=(), usb=()"),
    (b"x-robots-tag", b"noindex"),
)
STRICT = b"default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox"
"""The policy of whatever is no page of ours."""
_LONGEST_QUERY = 4096
_FRAMES = frozenset({b"iframe", b"frame", b"embed", b"object", b"fencedframe"})


class Door:
    """The link that lets a browser in, and the cookie that keeps it in."""

    def __init__(self, *, host: str, port: int, link_used: Callable[[str], None] = lambda link: None) -> None:
        """`link_used` is told the next link whenever one was used up."""
        self.cookie = f"orchard-view-{port}"
        """Name of the cookie."""
        self._host, self._port = host, port
        self._session = secrets.token_urlsafe(32)
        self._lock = threading.Lock()
        self._token = secrets.token_urlsafe(32)
        self._link_used = link_used

    @property
    def link(self) -> str:
        """The address that lets one browser in."""
        shown = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{shown}:{self._port}/?token={self._token}"

    def enter(self, token: str) -> str | None:
        """The cookie for a good token, which is then used up; None for a bad one."""
        with self._lock:
            if not hmac.compare_digest(token.encode("utf-8", "replace"), self._token.encode()):
                return None
            self._token = secrets.token_urlsafe(32)
        self._link_used(self.link)
        return f"{self.cookie}={self._session}; Path=/; HttpOnly; SameSite=Strict"

    def knows(self, cookies: Sequence[bytes]) -> bool:
        """Whether the cookie is among them."""
        wanted = f"{self.cookie}={self._session}".encode()
        given = [part.strip() for header in cookies for part in header.split(b";")]
        return any(hmac.compare_digest(part, wanted) for part in given)

    def is_ours(self, host: bytes) -> bool:
        """Whether a Host header names this listener by an address and not by somebody's name."""
        name, colon, port = host.decode("latin-1").rpartition(":")
        if not colon or port != str(self._port):
            return False
        name = name.strip("[]").lower()
        if name in ("localhost", self._host.lower()):
            return True
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return False
        return address.is_loopback or not ipaddress.ip_address(self._host).is_loopback


class Guard:
    """The ASGI application around the pages."""

    def __init__(self, app: App, door: Door) -> None:
        self._app, self._door = app, door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await self._http(scope, receive, _with_headers(send))

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers: dict[bytes, list[bytes]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.lower(), []).append(value)
        if scope["method"] not in ("GET", "HEAD"):
            await _say(send, 405, "Only GET and HEAD are answered.", (b"allow", b"GET, HEAD"))
        elif not (len(hosts := headers.get(b"host", [])) == 1 and self._door.is_ours(hosts[0])):
            await _say(send, 421, "This server answers to its own address alone.")
        elif len(scope.get("query_string", b"")) > _LONGEST_QUERY:
            await _say(send, 414, "The address is too long.")
        elif _is_foreign(headers):
            await _say(send, 403, "Other sites may not read this.")
        elif scope["path"] == "/" and (token := _token(scope["query_string"])):
            await self._enter(token, headers, send)
        elif not self._door.knows(headers.get(b"cookie", [])):
            await _say(send, 403, _LOCKED)
        else:
            await self._app(scope, receive, send)

    async def _enter(self, token: str, headers: dict[bytes, list[bytes]], send: Send) -> None:
        cookie = self._door.enter(token)
        if cookie is None:
            if self._door.knows(headers.get(b"cookie", [])):  # the used link again, by the browser it let in
                await _say(send, 303, "", (b"location", b"/"))
            else:
                await _say(send, 403, _LOCKED)
        elif headers.get(b"sec-fetch-site") == [b"cross-site"]:
            # Followed from another site, a redirect would not carry the new cookie; a page's own step does.
            await _say(send, 200, "", (b"set-cookie", cookie.encode()), (b"refresh", b"0; url=/"))
        else:
            await _say(send, 303, "", (b"set-cookie", cookie.encode()), (b"location", b"/"))


_LOCKED = (
    "This viewer is locked. Open the link that orchard view printed; each works once, and after its use the"
    " next one is printed."
)


def _token(query: bytes) -> str:
    try:
        fields = parse_qs(query.decode("latin-1"), max_num_fields=20)
    except ValueError:  # more fields than any link of ours has
        return ""
    return fields.get("token", [""])[0]


def _is_foreign(headers: dict[bytes, list[bytes]]) -> bool:
    """Asked for by another site's page, or to be framed. Browsers say so, and scripts cannot make it up."""
    if headers.get(b"sec-fetch-dest", [b""])[0] in _FRAMES:
        return True
    other = headers.get(b"sec-fetch-site", [b"none"])[0] in (b"cross-site", b"same-site")
    return other and headers.get(b"sec-fetch-mode", [b"navigate"])[0] != b"navigate"


def _with_headers(send: Send) -> Send:
    async def sending(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            given = list(message.get("headers", []))
            names = {name.lower() for name, _ in given}
            given += HEADERS
            if b"content-security-policy" not in names:
                given.append((b"content-security-policy", STRICT))
            if b"cache-control" not in names:
                given.append((b"cache-control", b"no-store"))
            message = {**message, "headers": given}
        await send(message)

    return sending


async def _say(send: Send, status: int, text: str, *headers: tuple[bytes, bytes]) -> None:
    body = f"{text}\n".encode() if text else b""
    told = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", str(len(body)).encode()),
        *headers,
    ]
    await send({"type": "http.response.start", "status": status, "headers": told})
    await send({"type": "http.response.body", "body": body})
