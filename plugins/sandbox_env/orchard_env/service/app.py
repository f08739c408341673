"""The ASGI application."""

from __future__ import annotations

import importlib.util
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from orchard_core import OrchardError, __version__
from orchard_env.service.document import document
from orchard_env.service.front import Front
from orchard_env.service.jobs import Jobs
from orchard_env.service.log import SERVICE
from orchard_env.service.observe.routes import add_observe
from orchard_env.service.problems import problem, refused, unforeseen
from orchard_env.service.services import Services
from orchard_env.service.v1.routes import add_v1

_NO_CALL = {404: "there is no {path} here", 405: "{path} has no {method}"}
_PATH_MAX = 200

Part = Callable[[FastAPI, Services], None]
"""Adds routes to the application. A route's handler takes a starlette Request or WebSocket; the caller is
`request.scope["tenant"]` (a `seams.Tenant`) and `request.scope["request_id"]`, put there by the front, which
also makes an answer of every error that a handler raises."""


def build_app(services: Services, *, parts: Sequence[Part] = ()) -> ASGIApp:
    """The service over HTTP: v1, v2 where it is there, and the given parts."""
    jobs = Jobs(
        services.fleet,
        admission=services.admission,
        meters=services.meters,
        output_limit=services.settings.output_mb << 20,
        remember=services.settings.jobs_mb << 20,
    )
    app = FastAPI(
        title="Orchard Env",
        version=__version__,
        description="Sandboxes as a service.",
        lifespan=_lifespan(services, jobs),
        docs_url=None,
        redoc_url=None,
        separate_input_output_schemas=False,
    )
    app.router.redirect_slashes = False
    _tell_errors(app)
    add_v1(app, services, jobs)
    for part in (*_installed(), add_observe, *parts):
        part(app, services)
    app.openapi = lambda: document(app)  # type: ignore[method-assign]
    return Front(app, services)


def _installed() -> tuple[Part, ...]:
    if importlib.util.find_spec("orchard_env.service.v2.routes") is None:
        return ()
    module = importlib.import_module("orchard_env.service.v2.routes")
    admin = importlib.import_module("orchard_env.service.tenancy.admin")
    return (cast("Part", module.add_v2), cast("Part", admin.add_admin))


def _lifespan(services: Services, jobs: Jobs) -> Callable[[FastAPI], Any]:
    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        await services.fleet.start()
        try:
            yield
        finally:
            if not services.fleet.adopts:
                running = await jobs.open_jobs()
                if running:
                    SERVICE.warning("%d running jobs end with their sandboxes", running)
            await services.fleet.drain()

    return life


def _tell_errors(app: FastAPI) -> None:
    async def orchard(request: Request, error: Exception) -> Response:
        assert isinstance(error, OrchardError)
        return problem(error, request.scope["request_id"])

    async def http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        said = _NO_CALL.get(error.status_code, "{detail}").format(
            method=request.method, path=request.url.path[:_PATH_MAX], detail=error.detail
        )
        answer = refused(error.status_code, said, request.scope["request_id"])
        answer.headers.update(error.headers or {})
        return answer

    async def bug(request: Request, error: Exception) -> Response:
        return unforeseen(request.scope["request_id"])

    app.add_exception_handler(OrchardError, orchard)
    app.add_exception_handler(HTTPException, http)
    app.add_exception_handler(Exception, bug)
