"""Raw connections to an agent through a service, which carries them over WebSocket.

The first frame is text, the agent's answer as JSON: `status`, `headers`, and `body` when it refused. Binary
frames then are the bytes of either direction; the text frame `{"eof": true}` is the end of one direction.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import aiohttp
from yarl import URL

from orchard_core.errors import SandboxConnectionLost
from orchard_core.sandbox.agent.address import AgentAddress, Streams
from orchard_core.sandbox.agent.websocket_transport import WebSocketTransport
from orchard_core.sandbox.agent.wire import Answer

_HEARTBEAT_S = 60.0
_FRAME_MAX = 16 << 20
_BUFFER = 1 << 20


class WebSocketCalls:
    """Opens them; all share one pool."""

    def __init__(self, address: AgentAddress, headers: Mapping[str, str]) -> None:
        self._address = address
        self._headers = headers
        self._session: aiohttp.ClientSession | None = None

    async def open(self, target: str, patience: float) -> tuple[Answer, Streams]:
        """The agent's answer, and the connection, a raw one after 101, which the caller closes. Raises
        SandboxConnectionLost."""
        try:
            async with asyncio.timeout(patience):
                socket = await self._connect(target)
                try:
                    return await self._begun(socket)
                except BaseException:
                    await socket.close()
                    raise
        except aiohttp.WSServerHandshakeError as error:
            return _closed(error.status, _lowered(error.headers or {}), b"")
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise SandboxConnectionLost(
                f"the service at {self._address.url} opened no connection to the agent: {error!r}",
                hint="a proxy on the way must let WebSocket through",
            ) from error

    async def _connect(self, target: str) -> aiohttp.ClientWebSocketResponse:
        if self._session is None:
            self._session = aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar())
        host = f"{'http' if self._address.tls is None else 'https'}://{self._address.authority}"
        return await self._session.ws_connect(
            URL(host + target, encoded=True),
            headers=dict(self._headers),
            ssl=self._address.tls or True,
            max_msg_size=_FRAME_MAX,
            heartbeat=_HEARTBEAT_S,
            autoclose=True,
        )

    async def _begun(self, socket: aiohttp.ClientWebSocketResponse) -> tuple[Answer, Streams]:
        said = _answer(await socket.receive())
        headers = _lowered(said.get("headers") or {})
        if said["status"] != 101:
            body = said.get("body", "")
            await socket.close()
            text = body if isinstance(body, str) else json.dumps(body)
            return _closed(said["status"], headers, text.encode())
        reader = asyncio.StreamReader(limit=_BUFFER)
        protocol = asyncio.StreamReaderProtocol(reader)
        transport = WebSocketTransport(socket, protocol)
        transport.start()
        writer = asyncio.StreamWriter(transport, protocol, reader, asyncio.get_running_loop())
        return Answer(reader, 101, headers), (reader, writer)

    async def close(self) -> None:
        """Drop them all."""
        if self._session is not None:
            await self._session.close()


def _closed(status: int, headers: dict[str, str], body: bytes) -> tuple[Answer, Streams]:
    """A refusal, whose connection is at its end already."""
    reader = asyncio.StreamReader()
    reader.feed_data(body)
    reader.feed_eof()
    protocol = asyncio.StreamReaderProtocol(reader)
    writer = asyncio.StreamWriter(_Ended(), protocol, reader, asyncio.get_running_loop())
    answer = Answer(reader, status, {**headers, "content-length": str(len(body))})
    answer.of_service = True
    return answer, (reader, writer)


class _Ended(asyncio.Transport):
    """A connection that is over."""

    def is_closing(self) -> bool:
        return True

    def close(self) -> None:
        pass

    def abort(self) -> None:
        pass


def _answer(message: aiohttp.WSMessage) -> dict[str, Any]:
    try:
        if message.type is aiohttp.WSMsgType.TEXT:
            said = json.loads(message.data)
            return {**said, "status": int(said["status"])}
    except (ValueError, KeyError, TypeError):
        pass
    raise SandboxConnectionLost(
        f"no service of ours carries a connection so: {str(message.data)[:80]!r}",
        hint="see that the URL leads to an Orchard Env service of this version",
    )


def _lowered(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}
