"""One way to an agent: an address, what is sent with every call, and the connections that stand."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from orchard_core.errors import SandboxConnectionLost, SandboxGone
from orchard_core.sandbox.agent.address import AgentAddress, Streams
from orchard_core.sandbox.agent.proof import Proof
from orchard_core.sandbox.agent.wire import Answer, Connection
from orchard_core.types.sandbox import AgentEndpoint

if TYPE_CHECKING:
    from collections.abc import Mapping

    from orchard_core.sandbox.agent.websocket import WebSocketCalls

_IDLE_MAX = 64
_SERVICE_IDLE_S = 4.0
"""Services close what lies idle, most of them after five seconds; a call must not meet that moment."""


class Route:
    """Everything above it chooses between routes, nothing below it knows that there are several."""

    def __init__(self, endpoint: AgentEndpoint, *, connect_s: float) -> None:
        self.address = AgentAddress.parse(endpoint.url, ca_file=endpoint.ca_file)
        self.headers = _headers(endpoint)
        self._proof = Proof(endpoint) if self.address.lent and endpoint.token else None
        self.losses = 0
        """Calls in a row that broke here."""
        self._connect_s = connect_s
        self._idle: deque[tuple[Connection, float]] = deque()
        self._closed = False
        self._websockets: WebSocketCalls | None = None

    @property
    def service(self) -> bool:
        """A service stands between, which passes calls on."""
        return bool(self.address.prefix)

    def target(self, target: str) -> str:
        """Path and query of a call as they are sent here."""
        return self.address.prefix + target

    async def acquire(self) -> Connection:
        """A connection, one that stands if possible. Raises SandboxGone when nothing listens at an agent's
        address, AgentRefused when another does, SandboxConnectionLost."""
        now = asyncio.get_running_loop().time()
        while self._idle:
            connection, since = self._idle.pop()
            if connection.usable and not (self.service and now - since > _SERVICE_IDLE_S):
                return connection
            connection.close()
        return Connection(await self.connect(), host=self.address.authority)

    async def connect(self) -> Streams:
        """A connection of its own. Raises as `acquire`."""
        if self._closed:
            raise SandboxGone("this client is closed")
        try:
            async with asyncio.timeout(self._connect_s):
                return await self._proven(await self.address.connect())
        except (FileNotFoundError, ConnectionRefusedError) as error:
            if self.service:
                raise self._unreachable(error) from error
            raise SandboxGone(
                f"no agent listens at {self.address.url}", hint="the sandbox has ended"
            ) from error
        except (OSError, TimeoutError) as error:
            raise self._unreachable(error) from error

    async def _proven(self, streams: Streams) -> Streams:
        """A connection to the agent itself, or none."""
        if self._proof is None:
            return streams
        connection = Connection(streams, host=self.address.authority)
        try:
            await self._proof.demand(connection, self._connect_s)
        except BaseException:
            connection.close()
            raise
        return streams

    def _unreachable(self, error: Exception) -> SandboxConnectionLost:
        what = "the service that leads to the agent" if self.service else "the agent"
        return SandboxConnectionLost(
            f"cannot reach {what} at {self.address.url}: {error!r}",
            hint="see that the service runs and that its URL is right" if self.service else "",
        )

    async def upgrade(
        self, method: str, target: str, protocol: str, patience: float
    ) -> tuple[Answer, Streams]:
        """The answer, and a connection of its own, a raw one after 101. The caller closes it."""
        if self.service:
            return await self._sockets().open(self.target(target), patience)
        connection = Connection(await self.connect())
        headers = {**self.headers, "Connection": "Upgrade", "Upgrade": protocol}
        try:
            answer = await connection.call(method, target, headers, b"", patience)
        except BaseException:
            connection.close()
            raise
        return answer, (connection.reader, connection.writer)

    def release(self, connection: Connection, answer: Answer | None) -> None:
        """Keep the connection for the next call, if its answer was read to the end."""
        reusable = answer is not None and answer.complete and answer.headers.get("connection") != "close"
        if reusable and connection.usable and not self._closed and len(self._idle) < _IDLE_MAX:
            self._idle.append((connection, asyncio.get_running_loop().time()))
        else:
            connection.close()

    def _sockets(self) -> WebSocketCalls:
        if self._websockets is None:
            from orchard_core.sandbox.agent.websocket import WebSocketCalls  # most sandboxes never need it

            self._websockets = WebSocketCalls(self.address, self.headers)
        return self._websockets

    def drop_idle(self) -> None:
        """Close the connections that no call uses."""
        while self._idle:
            self._idle.pop()[0].close()

    async def close(self) -> None:
        """Drop all idle connections; calls under way end by themselves."""
        self._closed = True
        self.drop_idle()
        if self._websockets is not None:
            await self._websockets.close()


def _headers(endpoint: AgentEndpoint) -> Mapping[str, str]:
    """A service puts the token in itself: then there is none to send."""
    token = {"Authorization": f"Bearer {endpoint.token}"} if endpoint.token else {}
    return {**token, "X-Orchard-Sandbox": endpoint.sandbox_id, **endpoint.headers}
