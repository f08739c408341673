"""`GET /metrics`, `GET /status` and `GET /v2/overview`."""

from __future__ import annotations

import time
from typing import Annotated
from urllib.parse import parse_qs

from fastapi import APIRouter, FastAPI, Query, Request
from starlette.requests import Request as AnyRequest
from starlette.responses import Response
from starlette.routing import Route

from orchard_env.service.faults import KeyMissing, ScopeMissing, ServiceFault
from orchard_env.service.http import caller, read_body
from orchard_env.service.observe.listener import CONTENT_TYPE
from orchard_env.service.observe.observing import Observing
from orchard_env.service.observe.overview import overview
from orchard_env.service.observe.page import locked_page, status_page
from orchard_env.service.observe.session import COOKIE, StatusSessions
from orchard_env.service.problems import status_of
from orchard_env.service.seams import AuditEvent, Scope, Tenant
from orchard_env.service.services import Services
from orchard_env.service.v2.refusals import REFUSALS
from orchard_env.service.v2.route import JsonRoute
from orchard_env.types.overview import Overview

_FORM_MAX = 4096
_SHOWN = 50


def add_observe(app: FastAPI, services: Services) -> None:
    """Add them, where the service is watched."""
    if services.watch is None:
        return
    routes = WatchRoutes(services, services.watch)
    router = APIRouter(prefix="/v2", route_class=JsonRoute, tags=["service"])
    router.add_api_route(
        "/overview", routes.overview, methods=["GET"], response_model=Overview, responses=REFUSALS
    )
    app.include_router(router)
    app.router.routes += [
        Route("/metrics", routes.metrics, methods=["GET"]),
        Route("/status", routes.status, methods=["GET"]),
        Route("/status/enter", routes.enter, methods=["POST"]),
        Route("/status/leave", routes.leave, methods=["POST"]),
    ]


class WatchRoutes:
    """Handlers over the parts of one service."""

    def __init__(self, services: Services, watch: Observing) -> None:
        self._services = services
        self._watch = watch
        self._sessions = StatusSessions(services.secret, services.tenancy, lasts_s=watch.settings.status_s)

    async def overview(
        self,
        request: Request,
        sandboxes: Annotated[int, Query(ge=0, le=1000, description="So many of the newest.")] = _SHOWN,
    ) -> Overview:
        """What this process is doing and costs, for administrators."""
        caller(request, Scope.ADMIN)
        return overview(self._services, self._watch, sandboxes=sandboxes)

    async def metrics(self, request: AnyRequest) -> Response:
        """For Prometheus: by the metrics key, or an administrator's as `X-API-Key` or `Bearer`."""
        kind, _, bearer = request.headers.get("authorization", "").partition(" ")
        bearer = bearer.strip() if kind.lower() == "bearer" else ""
        if not (bearer and self._watch.opens_metrics(bearer)):
            await self._admin(request, request.headers.get("x-api-key") or bearer or None)
        return Response(self._services.meters.exposition(), headers={"content-type": CONTENT_TYPE})

    async def status(self, request: AnyRequest) -> Response:
        """For people: the page, or where a key is asked for."""
        leaves = self._sessions.admits(request.cookies.get(COOKIE, ""))
        if not leaves:
            try:
                await self._admin(request, request.headers.get("x-api-key"))
            except KeyMissing:
                return locked_page(401, "")
            except ServiceFault as error:
                return locked_page(status_of(error), error.message)
        return status_page(overview(self._services, self._watch, sandboxes=_SHOWN), leaves=leaves)

    async def enter(self, request: AnyRequest) -> Response:
        """A key came from the page's form."""
        if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return locked_page(403, "Another site sent this form.")
        raw = await read_body(request, _FORM_MAX)
        try:
            fields = parse_qs(raw.decode("ascii"), max_num_fields=4)
        except ValueError:
            fields = {}
        try:
            tenant = await self._admin(request, fields.get("key", [""])[0].strip() or None)
        except ServiceFault as error:
            return locked_page(status_of(error), error.message)
        return _to_status(self._sessions.cookie(tenant, secure=request.url.scheme == "https"))

    async def leave(self, request: AnyRequest) -> Response:
        """The browser is to forget it."""
        return _to_status(self._sessions.no_cookie(secure=request.url.scheme == "https"))

    async def _admin(self, request: AnyRequest, key: str | None) -> Tenant:
        """Whose key it is. Raises KeyMissing, KeyRefused, ScopeMissing; what is refused is noted."""
        try:
            tenant = await self._services.tenancy.identify(key)
        except ServiceFault as error:
            self._refused(request, error, None)
            raise
        if not tenant.is_admin:
            fault = ScopeMissing(
                "this is for administrators: the key lacks the scope admin",
                hint="ask the operator for a key that has it",
            )
            self._refused(request, fault, tenant)
            raise fault
        request.scope["tenant"] = tenant
        return tenant

    def _refused(self, request: AnyRequest, error: ServiceFault, tenant: Tenant | None) -> None:
        self._services.audit.record(
            AuditEvent(
                at=time.time(),
                request_id=request.scope["request_id"],
                tenant="" if tenant is None else tenant.name,
                key_id="" if tenant is None else tenant.key_id,
                action="key.refused",
                status=status_of(error),
                client=request.client.host if request.client else "",
            )
        )


def _to_status(cookie: str) -> Response:
    headers = {"location": "/status", "set-cookie": cookie, "cache-control": "no-store"}
    return Response(status_code=303, headers=headers)
