"""The gateway as an ASGI application: a key finds a session, a path a dialect; nothing else is served."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from hashlib import sha256

from orchard_core.gateway import faults, http
from orchard_core.gateway.dialect import DialectCodec
from orchard_core.gateway.dialects import BY_PATH, speaker
from orchard_core.gateway.headers import Headers
from orchard_core.gateway.http import Client, Receive, Scope, Send
from orchard_core.gateway.messages.counting import COUNT
from orchard_core.gateway.models_list import MODELS, model_named, models_of
from orchard_core.gateway.serving import count, refuse, serve
from orchard_core.gateway.session import Session
from orchard_core.gateway.tools.asgi import serve_tools
from orchard_core.gateway.tools.routes import serves_tools

MAX_OPEN = 64
"""Requests of one session that may be open at once, from a body's first byte to the end of its answer."""


Work = Callable[[Session, bytes, Headers, Client, Send], Awaitable[None]]
"""Answers a request whose session is known and whose body has come. Raises ClientGone."""


def digest(key: str) -> bytes:
    """Keys are looked up by hash, so that the time a look-up takes tells nothing of a key."""
    return sha256(key.encode("utf-8", "surrogateescape")).digest()


class GatewayApp:
    """Serves the sessions it is given."""

    def __init__(self, *, max_body: int, stall_s: float) -> None:
        self.sessions: dict[bytes, Session] = {}
        self._max_body = max_body
        self._stall_s = stall_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        path, method = scope["path"], scope["method"]
        spoken = BY_PATH.get(path)
        if spoken is not None and method == "POST":
            await self._work(scope, receive, send, spoken.native, partial(serve, spoken))
        elif path == COUNT and method == "POST":
            native = speaker(path)
            await self._work(scope, receive, send, native, partial(count, native))
        elif serves_tools(path):
            await self._work(scope, receive, send, speaker(path), partial(_tools, scope))
        elif path == "/" and method == "HEAD":
            await http.send_json(send, 200, b"")  # whether anyone is there: no key is needed
        elif path == MODELS or path.startswith(f"{MODELS}/"):
            await self._models(scope, send)
        elif spoken is not None or path == COUNT:
            await refuse(send, speaker(path), _wrong_method(path, method))
        else:
            served = ", ".join([*BY_PATH, MODELS])
            message = f"there is no {path[:200]} here; this gateway serves {served}"
            await refuse(send, speaker(path), faults.invalid(message, status=404, code="not_found"))

    async def _models(self, scope: Scope, send: Send) -> None:
        path, headers = scope["path"], Headers(scope["headers"])
        codec = speaker("/v1/messages" if "anthropic-version" in headers.dialect else path)
        if scope["method"] != "GET":
            await refuse(send, codec, _wrong_method(path, scope["method"]))
            return
        session = await self._session(send, codec, headers)
        if session is None:
            return
        if path == MODELS:
            await http.send_json(send, 200, models_of(session, codec.dialect))
        elif (found := model_named(path, session, codec.dialect)) is not None:
            await http.send_json(send, 200, found)
        else:
            message = f"this key serves the model {session.endpoint.model!r} only"
            await refuse(send, codec, faults.invalid(message, status=404, code="model_not_found"))

    async def _session(self, send: Send, codec: DialectCodec, headers: Headers) -> Session | None:
        """The key's session, None when the client was refused."""
        session = self.sessions.get(digest(headers.key)) if headers.key else None
        if session is None:
            message = "this key is not one of a running rollout" if headers.key else "no key was given"
            fault = faults.invalid(message, status=401, code="invalid_api_key")
            await refuse(send, codec, fault, close=headers.has_body)
        return session

    async def _work(
        self, scope: Scope, receive: Receive, send: Send, codec: DialectCodec, work: Work
    ) -> None:
        """Find the session, read the body, and leave the rest to `work`."""
        headers = Headers(scope["headers"])
        session = await self._session(send, codec, headers)
        if session is None:
            return
        if headers.encoding not in (b"", b"identity"):
            fault = faults.invalid("compressed requests are not taken", status=415, code="unsupported")
            await refuse(send, codec, fault, close=True)
        elif session.requests >= MAX_OPEN:
            await refuse(send, codec, faults.too_many(MAX_OPEN), close=True)
        else:
            session.requests += 1
            try:
                body = await self._body(receive, send, codec, headers.length)
                if body is not None:
                    client: Client = scope[http.CLIENT]
                    await work(session, body, headers, client, http.bounded(send, client, self._stall_s))
            except http.ClientGone:
                pass
            finally:
                session.requests -= 1

    async def _body(self, receive: Receive, send: Send, codec: DialectCodec, length: int) -> bytes | None:
        try:
            if length > self._max_body:
                raise http.BodyTooLarge
            return await http.read_body(receive, limit=self._max_body)
        except http.BodyTooLarge:
            message = f"the request is larger than {self._max_body} bytes"
            fault = faults.invalid(message, status=413, code="too_large")
            await refuse(http.lingering(send, receive, limit=8 * self._max_body), codec, fault, close=True)
        except http.ClientGone:
            pass
        return None


async def _tools(
    scope: Scope, session: Session, body: bytes, headers: Headers, client: Client, send: Send
) -> None:
    await serve_tools(session.tools, scope, body, client, send)


def _wrong_method(path: str, method: str) -> faults.Fault:
    return faults.invalid(f"{path} does not take {method}", status=405, code="method_not_allowed")
