"""Ports inside a sandbox, and the way from inside to a model: raw connections in WebSockets."""

from __future__ import annotations

from starlette.websockets import WebSocket

from orchard_env.service.passthrough_socket import serve_upgrade
from orchard_env.service.services import Services


class PortSocket:
    """Serves WebSockets at `/v2/sandboxes/{sandbox_id}/ports/{port}`: one TCP connection to a port on the
    sandbox's loopback. Frames as passthrough_socket tells them."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def __call__(self, socket: WebSocket) -> None:
        """The whole life of one socket."""
        port = str(socket.path_params["port"])
        await serve_upgrade(self._services, socket, f"/v1/forward/{port}", b"")


class TunnelSocket:
    """Serves WebSockets at `/v2/sandboxes/{sandbox_id}/tunnel`: the agent listens on a loopback address
    inside and carries what connects to it back over this socket, in the frames of its tunnel."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def __call__(self, socket: WebSocket) -> None:
        """The whole life of one socket."""
        await serve_upgrade(self._services, socket, "/v1/tunnel", socket.scope["query_string"])
