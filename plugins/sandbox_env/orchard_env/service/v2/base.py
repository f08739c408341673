"""What the routes of `/v2` share."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query, Request

from orchard_env.service.entry import Entry
from orchard_env.service.http import caller
from orchard_env.service.reach import reach
from orchard_env.service.seams import Scope, Tenant
from orchard_env.service.services import Services
from orchard_env.types.v2_exec import Encoding, ExecId

SandboxId = Annotated[str, Path(description="The sandbox's id: a DNS label.")]
ExecPath = Annotated[ExecId, Path(description="The command's id.")]
Wait = Annotated[
    float,
    Query(
        ge=0, le=86400, allow_inf_nan=False, description="Seconds to wait at most; the service has a bound."
    ),
]
EncodingQuery = Annotated[Encoding, Query(description="How bytes are told: text with U+FFFD, or exactly.")]


class Routes:
    """A group of routes over the service's parts."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def _entry(self, request: Request, needed: Scope) -> Entry:
        return await reach(self._services, request, needed)

    def _caller(self, request: Request, needed: Scope) -> Tenant:
        return caller(request, needed)

    def _bounded(self, wait_s: float) -> float:
        return min(wait_s, self._services.settings.wait_s)
