"""`/v2`, put together."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from fastapi import APIRouter, FastAPI
from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket

from orchard_env.service.passthrough import PassThrough
from orchard_env.service.passthrough_socket import SocketPassThrough
from orchard_env.service.plain_route import PlainRoute
from orchard_env.service.services import Services
from orchard_env.service.v2.agent import AgentRoutes
from orchard_env.service.v2.endpoint import EndpointRoutes
from orchard_env.service.v2.exec import ExecRoutes
from orchard_env.service.v2.exec_socket import ExecSocket
from orchard_env.service.v2.files import FileRoutes
from orchard_env.service.v2.logs import LogRoutes
from orchard_env.service.v2.ports import PortSocket, TunnelSocket
from orchard_env.service.v2.sandboxes import SandboxRoutes
from orchard_env.service.v2.service import ServiceRoutes
from orchard_env.service.v2.snapshots import SnapshotRoutes
from orchard_env.service.v2.sse import EventRoutes

_ONE = "/v2/sandboxes/{sandbox_id}"
_GROUPS = (
    ServiceRoutes,
    SandboxRoutes,
    EventRoutes,
    ExecRoutes,
    LogRoutes,
    FileRoutes,
    SnapshotRoutes,
    EndpointRoutes,
    AgentRoutes,
)


def add_v2(app: FastAPI, services: Services) -> None:
    """Add every call of `/v2`. The pass-through comes first: FastAPI only documents it."""
    app.router.routes += [
        PlainRoute(f"{_ONE}/agent/{{path:path}}", PassThrough(services)),
        _socket(f"{_ONE}/agent/{{path:path}}", SocketPassThrough(services)),
        _socket(f"{_ONE}/exec/stream", ExecSocket(services)),
        _socket(f"{_ONE}/ports/{{port}}", PortSocket(services)),
        _socket(f"{_ONE}/tunnel", TunnelSocket(services)),
    ]
    router = APIRouter(prefix="/v2")
    for group in _GROUPS:
        router.include_router(group(services).router())
    app.include_router(router)


def _socket(path: str, serve: Callable[[WebSocket], Awaitable[None]]) -> WebSocketRoute:
    async def served(socket: WebSocket) -> None:
        await serve(socket)

    return WebSocketRoute(path, served)
