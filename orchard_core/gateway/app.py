"""The gateway as an ASGI application: a key finds a session, a path a dialect; nothing else is served."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import aclosing
from functools import partial
from hashlib import sha256

from orchard_core.errors import ModelError, SessionClosed
from orchard_core.gateway import faults, http
from orchard_core.gateway.call import LEFT, Call
from orchard_core.gateway.chat.codec import ChatCodec
from orchard_core.gateway.dialect import DialectCodec
from orchard_core.gateway.http import Client, Receive, Scope, Send
from orchard_core.gateway.json_text import JsonFault, dumps
from orchard_core.gateway.session import Session
from orchard_core.gateway.tools.asgi import serve_tools
from orchard_core.gateway.tools.routes import serves_tools

CODECS: Mapping[str, DialectCodec] = {"/v1/chat/completions": ChatCodec()}
"""Dialects by path. A new one is one codec here."""

MAX_OPEN = 64
"""Requests of one session that may be open at once, from a body's first byte to the end of its answer."""


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
        codec = CODECS.get(path)
        if serves_tools(path):
            await self._authorised(scope, receive, send, None)
        elif codec is None and path != "/v1/models":
            served = ", ".join([*CODECS, "/v1/models"])
            message = f"there is no {path[:200]} here; this gateway serves {served}"
            await http.send_fault(send, faults.invalid(message, status=404, code="not_found"))
        elif method != ("GET" if codec is None else "POST"):
            message = f"{path} does not take {method}"
            await http.send_fault(send, faults.invalid(message, status=405, code="method_not_allowed"))
        else:
            await self._authorised(scope, receive, send, codec)

    async def _authorised(
        self, scope: Scope, receive: Receive, send: Send, codec: DialectCodec | None
    ) -> None:
        headers = _read_headers(scope["headers"])
        session = self.sessions.get(digest(headers.key)) if headers.key else None
        if session is None:
            message = "this key is not one of a running rollout" if headers.key else "no key was given"
            await http.send_fault(
                send, faults.invalid(message, status=401, code="invalid_api_key"), close=headers.has_body
            )
        elif codec is None and not serves_tools(scope["path"]):
            await http.send_json(send, 200, _models(session))
        elif headers.encoding not in (b"", b"identity"):
            message = "compressed requests are not taken"
            await http.send_fault(send, faults.invalid(message, status=415, code="unsupported"), close=True)
        elif session.requests >= MAX_OPEN:
            await http.send_fault(send, faults.too_many(MAX_OPEN), close=True)
        else:
            session.requests += 1
            try:
                body = await self._body(receive, send, headers.length)
                if body is not None:
                    client: Client = scope[http.CLIENT]
                    bounded = http.bounded(send, client, self._stall_s)
                    if codec is None:
                        await serve_tools(session.tools, scope, body, client, bounded)
                    else:
                        await _serve(session, codec, body, client, bounded)
            except http.ClientGone:
                pass
            finally:
                session.requests -= 1

    async def _body(self, receive: Receive, send: Send, length: int) -> bytes | None:
        try:
            if length > self._max_body:
                raise http.BodyTooLarge
            return await http.read_body(receive, limit=self._max_body)
        except http.BodyTooLarge:
            message = f"the request is larger than {self._max_body} bytes"
            await http.send_fault(send, faults.invalid(message, status=413, code="too_large"), close=True)
        except http.ClientGone:
            pass
        return None


class _Headers:
    __slots__ = ("encoding", "has_body", "key", "length")

    def __init__(self) -> None:
        self.key = ""
        self.encoding = b""
        self.length = 0
        self.has_body = False


def _read_headers(headers: Iterable[tuple[bytes, bytes]]) -> _Headers:
    found = _Headers()
    for name, value in headers:
        if name == b"authorization":
            scheme, _, key = value.partition(b" ")
            if scheme.lower() == b"bearer":
                found.key = key.strip().decode("latin-1")
        elif name == b"x-api-key" and not found.key:
            found.key = value.decode("latin-1")
        elif name == b"content-length":
            found.length, found.has_body = int(value), True
        elif name == b"transfer-encoding":
            found.has_body = True
        elif name == b"content-encoding":
            found.encoding = value.lower()
    return found


def _models(session: Session) -> bytes:
    model = {"id": session.endpoint.model, "object": "model", "created": 0, "owned_by": "orchard"}
    return dumps({"object": "list", "data": [model]})


async def _serve(session: Session, codec: DialectCodec, body: bytes, client: Client, send: Send) -> None:
    try:
        request = codec.request(body, session.conversation)
    except JsonFault as fault:
        await http.send_fault(send, faults.invalid(f"the request cannot be read: {fault}"))
        return
    if request.model != session.endpoint.model:
        message = f"this key serves the model {session.endpoint.model!r}, not {request.model[:200]!r}"
        await http.send_fault(send, faults.invalid(message, status=404, code="model_not_found"))
        return
    try:
        call = session.begin(request, codec)
    except ModelError as error:
        await http.send_fault(send, faults.of(error))
        return
    client.watch(partial(call.end, LEFT))
    try:
        await (_stream(call, send) if request.stream else _whole(call, send))
    finally:
        client.watch(None)


async def _whole(call: Call, send: Send) -> None:
    try:
        body = await call.whole()
    except ModelError as error:
        await http.send_fault(send, faults.of(error))
    except asyncio.CancelledError:
        await http.send_fault(send, faults.of(_ended(call)))
    else:
        await http.send_json(send, 200, body)


async def _stream(call: Call, send: Send) -> None:
    started = False
    failure: ModelError | None = None
    try:
        async with aclosing(call.pieces()) as pieces:
            async for payload in pieces:
                if not started:
                    await http.start_stream(send)
                    started = True
                await http.send_event(send, payload)
    except ModelError as error:
        failure = error
    except asyncio.CancelledError:
        failure = _ended(call)
    await _finish_stream(send, started, failure)


async def _finish_stream(send: Send, started: bool, failure: ModelError | None) -> None:
    if failure is not None and not started:
        await http.send_fault(send, faults.of(failure))
        return
    if not started:
        await http.start_stream(send)
    last = b"[DONE]" if failure is None else faults.of(failure).body
    await http.send_event(send, last, more=False)


def _ended(call: Call) -> SessionClosed:
    """The error of a call that was ended on purpose; any other cancellation goes on."""
    task = asyncio.current_task()
    if not call.ended_by or task is None:
        raise asyncio.CancelledError
    task.uncancel()
    return SessionClosed(call.ended_by)
