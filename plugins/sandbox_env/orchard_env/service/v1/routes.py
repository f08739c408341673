"""Every route of v1, with what the OpenAPI document says of it."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import WebSocketRoute

from orchard_env.service.document import takes_body
from orchard_env.service.jobs import Jobs
from orchard_env.service.plain_route import PlainRoute
from orchard_env.service.services import Services
from orchard_env.service.v1 import models
from orchard_env.service.v1.files import FileRoutes
from orchard_env.service.v1.jobs import JobRoutes
from orchard_env.service.v1.pty import PtySocket
from orchard_env.service.v1.sandboxes import SandboxRoutes
from orchard_env.service.v1.service import ServiceRoutes

Handler = Callable[[Request], Awaitable[Response]]

_ALWAYS = (401, 403, 429, 503)
"""What every call may be refused with."""
_NOT_WORD = re.compile(r"\W+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of the API."""

    method: str
    """GET, POST, DELETE."""
    path: str
    """A template."""
    handler: Handler
    """What answers; its first line of documentation is the summary."""
    gives: type[BaseModel] | None = None
    """The answer's body."""
    takes: type[BaseModel] | None = None
    """The request's body."""
    query: tuple[tuple[str, str, bool], ...] = ()
    """Names of query parameters, their types, and whether they must be there."""
    refusals: tuple[int, ...] = ()
    """Statuses of a Problem besides those that every call may have."""


def add_call(app: FastAPI, call: Call, tag: str) -> None:
    """Add a route whose handler reads the request itself. FastAPI only documents it: what it does on the way
    to a handler costs as much as the handler."""
    served = PlainRoute(call.path, call.handler, methods=[call.method])
    served.methods = {call.method}  # starlette adds HEAD, which the document does not name
    app.router.routes.append(served)
    parameters = [
        {"name": name, "in": "query", "required": needed, "schema": {"type": kind}}
        for name, kind, needed in call.query
    ] + [
        {"name": part[1:-1], "in": "path", "required": True, "schema": {"type": "string"}}
        for part in call.path.split("/")
        if part.startswith("{")
    ]
    extra: dict[str, Any] = {"parameters": parameters} if parameters else {}
    if call.takes is not None:
        extra["requestBody"] = takes_body(app, call.takes)
    responses: dict[int | str, dict[str, Any]] = {
        status: {"model": models.Problem} for status in (*_ALWAYS, *call.refusals)
    }
    if call.gives is not None:
        responses[200] = {"model": call.gives}
    app.add_api_route(
        call.path,
        call.handler,
        methods=[call.method],
        tags=[tag],
        response_model=None,
        responses=responses,
        openapi_extra=extra,
        summary=(call.handler.__doc__ or "").splitlines()[0].rstrip("."),
        operation_id="_".join((tag, call.method.lower(), *_NOT_WORD.sub(" ", call.path).split())),
    )


def add_v1(app: FastAPI, services: Services, jobs: Jobs) -> None:
    """Add the published contract."""
    for call in (*_service(ServiceRoutes(services)), *_sandboxes(SandboxRoutes(services)),
                 *_jobs(JobRoutes(services, jobs)), *_files(FileRoutes(services))):  # fmt: skip
        add_call(app, call, "v1")
    app.router.routes.append(WebSocketRoute("/sandboxes/{sandbox_id}/exec/pty", PtySocket(services).serve))


def _service(routes: ServiceRoutes) -> tuple[Call, ...]:
    return (
        Call(method="GET", path="/", handler=routes.banner),
        Call(method="GET", path="/health", handler=routes.health),
        Call(method="GET", path="/resources", handler=routes.resources, gives=models.Resources),
    )


def _sandboxes(routes: SandboxRoutes) -> tuple[Call, ...]:
    one = "/sandboxes/{sandbox_id}"
    timeout = (("timeout", "number", False),)
    return (
        Call(
            method="POST",
            path="/sandboxes",
            handler=routes.create,
            takes=models.CreateSandbox,
            gives=models.SandboxBody,
            refusals=(400, 408, 409, 413, 422),
        ),
        Call(method="GET", path=one, handler=routes.get, gives=models.SandboxBody, refusals=(404,)),
        Call(
            method="GET",
            path=one + "/wait",
            handler=routes.wait,
            query=timeout,
            gives=models.SandboxBody,
            refusals=(404, 408, 410, 422, 502),
        ),
        Call(
            method="POST",
            path=one + "/heartbeat",
            handler=routes.heartbeat,
            gives=models.Beaten,
            refusals=(404, 410),
        ),
        Call(method="DELETE", path=one, handler=routes.delete, gives=models.Deleted, refusals=(404,)),
    )


def _jobs(routes: JobRoutes) -> tuple[Call, ...]:
    one, job = "/sandboxes/{sandbox_id}", "/jobs/{job_id}"
    using = (400, 404, 408, 409, 410, 413, 422, 502)
    return (
        Call(
            method="POST",
            path=one + "/exec",
            handler=routes.exec,
            takes=models.ExecCommand,
            gives=models.JobBody,
            refusals=using,
        ),
        Call(method="GET", path=job, handler=routes.get, gives=models.JobBody, refusals=(404, 410)),
        Call(
            method="GET",
            path=job + "/wait",
            handler=routes.wait,
            query=(("timeout", "number", False),),
            gives=models.JobBody,
            refusals=(404, 410, 422),
        ),
        Call(method="DELETE", path=job, handler=routes.kill, gives=models.JobBody, refusals=(404, 410)),
        Call(
            method="POST",
            path=one + "/apply_patch",
            handler=routes.apply_patch,
            takes=models.ApplyPatch,
            gives=models.Patched,
            refusals=using,
        ),
    )


def _files(routes: FileRoutes) -> tuple[Call, ...]:
    files = "/sandboxes/{sandbox_id}/files"
    using = (400, 404, 408, 409, 410, 413, 422, 502)
    return (
        Call(
            method="POST",
            path=files,
            handler=routes.write,
            takes=models.WriteFile,
            gives=models.Written,
            refusals=using,
        ),
        Call(
            method="GET",
            path=files,
            handler=routes.read,
            query=(("path", "string", True),),
            gives=models.FileBody,
            refusals=using,
        ),
        Call(
            method="GET",
            path=files + "/list",
            handler=routes.list,
            query=(("path", "string", False),),
            gives=models.Listing,
            refusals=using,
        ),
    )
