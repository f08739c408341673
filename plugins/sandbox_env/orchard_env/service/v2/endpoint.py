"""The agent itself, for who can reach it, and what it tells of itself."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from orchard_core import AgentEndpoint
from orchard_env.service.agent_words import agent_words
from orchard_env.service.noting import note
from orchard_env.service.seams import Scope
from orchard_env.service.v2.base import Routes, SandboxId
from orchard_env.service.v2.refusals import REFUSALS
from orchard_env.service.v2.route import JsonRoute
from orchard_env.types.v2 import EndpointView, MetricsView

Ttl = Annotated[int, Query(ge=1, le=7 * 86400, description="Seconds that the token is good for.")]


class EndpointRoutes(Routes):
    """`/v2/sandboxes/{sandbox_id}/endpoint` and `/metrics`."""

    def router(self) -> APIRouter:
        """The routes."""
        router = APIRouter(route_class=JsonRoute, tags=["direct"])
        one = "/sandboxes/{sandbox_id}"
        shared: dict[str, Any] = {"responses": REFUSALS}
        add = router.add_api_route
        add(f"{one}/endpoint", self.endpoint, methods=["GET"], response_model=EndpointView, **shared)
        add(
            f"{one}/endpoint",
            self.withdraw,
            methods=["DELETE"],
            status_code=204,
            response_class=Response,
            **shared,
        )
        add(f"{one}/metrics", self.metrics, methods=["GET"], response_model=MetricsView, **shared)
        return router

    async def endpoint(self, request: Request, sandbox_id: SandboxId, ttl: Ttl = 86400) -> EndpointView:
        """The agent's own address with a token for commands and files, so that a client need not go
        through the service; `url` is null, with the reason, where the network does not let it. Try it, and
        fall back to /v2/sandboxes/{sandbox_id}/agent."""
        entry = await self._entry(request, Scope.USE)
        async with entry.lent() as client:
            with agent_words():
                minted = await client.mint_token(float(ttl))
        note(self._services, request, "endpoint.get", entry.id)
        reached = not minted.url.startswith("unix:")
        return EndpointView(
            url=minted.url if reached else None,
            reason="" if reached else _UNIX,
            token=minted.token,
            sandbox_id=minted.sandbox_id,
            expires=time.time() + ttl,
        )

    async def withdraw(self, request: Request, sandbox_id: SandboxId, given: EndpointView) -> Response:
        """End a token, and every command that still runs which it started."""
        entry = await self._entry(request, Scope.USE)
        if given.token:
            endpoint = AgentEndpoint(url=given.url or "", token=given.token, sandbox_id=entry.id)
            with agent_words():
                await entry.sandbox.withdraw(endpoint)
        note(self._services, request, "endpoint.withdraw", entry.id)
        return Response(status_code=204)

    async def metrics(self, request: Request, sandbox_id: SandboxId) -> MetricsView:
        """What the sandbox's agent uses and holds. Asking is no use of the sandbox."""
        entry = await self._entry(request, Scope.READ)
        async with entry.lent() as client:
            return MetricsView(**asdict(await client.metrics()))


_UNIX = "the agent listens on a socket of the service's own machine; use /v2/sandboxes/{id}/agent"
