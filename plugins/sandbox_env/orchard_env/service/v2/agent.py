"""The pass-through as the document of the API tells it."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response

from orchard_env.service.passthrough import PassThrough
from orchard_env.service.v2.base import Routes, SandboxId
from orchard_env.service.v2.refusals import REFUSALS

AgentPath = Annotated[str, Path(description="A call of the agent's protocol, such as `v1/exec`.")]
_ANSWER: dict[str, Any] = {
    "description": "The agent's own answer; see the agent's protocol.",
    "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
}


class AgentRoutes(Routes):
    """`/v2/sandboxes/{sandbox_id}/agent/{path}`."""

    def router(self) -> APIRouter:
        """The routes."""
        router = APIRouter(tags=["direct"])
        for method in ("GET", "PUT", "POST", "DELETE"):
            router.add_api_route(
                "/sandboxes/{sandbox_id}/agent/{path:path}",
                self.agent,
                methods=[method],
                name=f"agent_{method.lower()}",
                summary="Agent",
                operation_id=f"v2_agent_{method.lower()}",
                responses={**REFUSALS, 200: _ANSWER},
                response_model=None,
                response_class=Response,
            )
        return router

    async def agent(self, request: Request, sandbox_id: SandboxId, path: AgentPath) -> Response:
        """The agent's own protocol through the service, with the service's key in place of the agent's
        token: method, query, body and answer pass as they are. Refusals of the service are problems, those
        of the agent are its own. Calls that upgrade travel as WebSockets to the same path."""
        return _Passed(PassThrough(self._services))


class _Passed(Response):
    def __init__(self, passes: PassThrough) -> None:
        super().__init__()
        self._passes = passes

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self._passes(scope, receive, send)
