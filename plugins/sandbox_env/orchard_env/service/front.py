"""What every request passes: its id, who calls, what became of it."""

from __future__ import annotations

import contextlib
import logging
import re
import secrets
import time
from typing import Any
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from orchard_core import OrchardError
from orchard_env.service.bodies import Bodies, HeldBody
from orchard_env.service.faults import KeyMissing, KeyRefused
from orchard_env.service.hosts import check_host
from orchard_env.service.log import ACCESS, REQUEST, SERVICE
from orchard_env.service.observe.doors import OWN_DOORS
from orchard_env.service.observe.spans import NoSpans, RequestSpan, Spans
from orchard_env.service.problems import problem, status_of, unforeseen
from orchard_env.service.rights import Rights
from orchard_env.service.room import OpenRequests, connections_max
from orchard_env.service.seams import AuditEvent, Tenant
from orchard_env.service.services import Services

_OPEN = frozenset({"/", "/health"})
"""Paths that need no key."""

_NOBODY = Tenant(name="")
_SWITCHED = 101
_REASON_MAX = 100
"""Characters of a WebSocket's last word, which has 123 bytes."""
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


class Front:
    """An ASGI application before the routes. It puts `tenant` and `request_id` into the scope."""

    def __init__(self, app: ASGIApp, services: Services) -> None:
        self._app = app
        self._services = services
        self._spans: Spans = NoSpans() if services.watch is None else services.watch.spans
        self._hosts = frozenset(services.settings.allowed_hosts)
        self._rights = Rights(services.tenancy, every_s=services.settings.rights_s)
        settings = services.settings
        self._bodies = Bodies(max(settings.bodies_mb, 2 * settings.body_mb) << 20)
        self._under_way = OpenRequests(connections_max(services.settings.connections))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        headers = Headers(scope=scope)
        request_id = scope["request_id"] = _request_id(headers)
        scope["body_s"] = self._services.settings.body_s
        held = scope["held_body"] = HeldBody(self._bodies)
        told = _Told(send, request_id)
        self._services.meters.arrived()
        span = self._spans.begin(scope.get("method", "WEBSOCKET"), headers)
        REQUEST.set(_marks(request_id, span.trace_id))
        try:
            await self._passed(scope, receive, told, headers)
        except OrchardError as error:
            await self._refuse(scope, receive, told, problem(error, request_id), error.message)
        except Exception:  # noqa: BLE001 - the border: a bug is logged and answered, and costs no more
            SERVICE.exception("request failed")
            await self._refuse(scope, receive, told, unforeseen(request_id))
        finally:
            held.done()
            self._note(scope, told, span, time.perf_counter() - began)

    async def _passed(self, scope: Scope, receive: Receive, told: _Told, headers: Headers) -> None:
        if self._hosts:
            check_host(headers, self._hosts)
        if scope["type"] == "http" and (scope["path"] in _OPEN or scope["path"] in OWN_DOORS):
            await self._app(scope, receive, told)
            return
        key = headers.get("x-api-key")
        if key is None and scope["type"] == "websocket":
            key = _key_in_query(scope)
        try:
            tenant = scope["tenant"] = await self._services.tenancy.identify(key)
            with self._under_way.one(tenant):
                async with self._rights.held(key, tenant):
                    await self._app(scope, receive, told)
        except (KeyMissing, KeyRefused) as error:
            self._services.audit.record(
                AuditEvent(
                    at=time.time(),
                    request_id=scope["request_id"],
                    tenant=_of(scope).name,
                    key_id=_of(scope).key_id,
                    action="key.refused",
                    status=status_of(error),
                    client=_client(scope),
                )
            )
            raise

    async def _refuse(
        self, scope: Scope, receive: Receive, told: _Told, response: Response, reason: str = ""
    ) -> None:
        if told.status == _SWITCHED:
            with contextlib.suppress(Exception):  # the client may have left, and the socket be closed
                code = 1008 if reason else 1011
                await told({"type": "websocket.close", "code": code, "reason": reason[:_REASON_MAX]})
            return
        if told.status:
            return  # the answer has begun: cutting it is all that is left, and returning does that
        if scope["type"] == "websocket" and "websocket.http.response" not in scope.get("extensions", {}):
            await told({"type": "websocket.close", "code": 1008})
            return
        await response(scope, receive, told)

    def _note(self, scope: Scope, told: _Told, span: RequestSpan, seconds: float) -> None:
        tenant = _of(scope)
        route = str(getattr(scope.get("route"), "path", "other"))
        self._services.meters.answered(route, told.status, seconds)
        span.end(route=route, status=told.status, tenant=tenant.name)
        if ACCESS.isEnabledFor(logging.INFO):
            fields = {
                "client": _client(scope),
                "tenant": tenant.name,
                "key_id": tenant.key_id,
                "method": scope.get("method", "WEBSOCKET"),
                "path": scope["path"],
                "status": told.status,
                "seconds": round(seconds, 6),
            }
            ACCESS.info("request", extra={"fields": fields})


def _of(scope: Scope) -> Tenant:
    """Who calls; nobody when its key was refused at once."""
    tenant: Tenant = scope.get("tenant", _NOBODY)
    return tenant


def _marks(request_id: str, trace_id: str) -> dict[str, str]:
    """What stands in every line of log about the request."""
    return {"request_id": request_id, "trace_id": trace_id} if trace_id else {"request_id": request_id}


class _Told:
    """A `send` that notes the status and gives the answer its request id."""

    def __init__(self, send: Send, request_id: str) -> None:
        self._send = send
        self._request_id = request_id.encode()
        self.status = 0

    async def __call__(self, message: Message) -> None:
        kind = message["type"]
        if kind in ("http.response.start", "websocket.http.response.start"):
            self.status = message["status"]
            message["headers"] = [*message.get("headers", ()), (b"x-request-id", self._request_id)]
        elif kind == "websocket.accept":
            self.status = 101
        elif kind == "websocket.close":
            self.status = self.status or 403
        await self._send(message)


def _request_id(headers: Headers) -> str:
    given = headers.get("x-request-id")
    if given is not None and _REQUEST_ID.fullmatch(given):
        return given
    return secrets.token_hex(8)


def _key_in_query(scope: Scope) -> str | None:
    """Browsers and the published clients cannot set headers on a web socket. The query is never logged."""
    found = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("api_key")
    return found[0] if found else None


def _client(scope: dict[str, Any] | Scope) -> str:
    client = scope.get("client")
    return str(client[0]) if client else ""
