"""Calls to one agent: a pool of connections, the two credentials, bounded repeats, typed errors."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from urllib.parse import quote_from_bytes

from orchard_core.errors import FileError, SandboxConnectionLost, SandboxGone
from orchard_core.sandbox.agent.address import AgentAddress, Streams
from orchard_core.sandbox.agent.faults import agent_error
from orchard_core.sandbox.agent.wire import ANSWER_MAX, Answer, Body, Connection
from orchard_core.types.sandbox import AgentEndpoint

CALL_S = 30.0
"""A call whose answer has not begun after this many seconds is lost."""
CONNECT_S = 10.0
_IDLE_MAX = 64
_PAUSES_S = (0.05, 0.2, 0.5, 1.0, 2.0)

Query = Mapping[str, object]
"""Text, numbers, or None for what is left out."""


class AgentLink:
    """Everything above it speaks of calls, nothing below it of agents."""

    def __init__(self, endpoint: AgentEndpoint) -> None:
        self.endpoint = endpoint
        self.address = AgentAddress.parse(endpoint.url)
        self._headers = {
            "Authorization": f"Bearer {endpoint.token}",
            "X-Orchard-Sandbox": endpoint.sandbox_id,
        }
        self._idle: deque[Connection] = deque()
        self._closed = False

    async def call(
        self,
        method: str,
        path: str,
        query: Query | None = None,
        body: bytes = b"",
        *,
        repeat: bool = False,
        patience: float = CALL_S,
        limit: int = ANSWER_MAX,
    ) -> tuple[dict[str, str], bytes]:
        """Headers and body of a good answer. `repeat` says that sending it twice does no harm.

        Raises the typed error of a bad answer, FileError for one with more than `limit` bytes, SandboxGone
        when nothing listens, SandboxConnectionLost.
        """
        for pause in (*_PAUSES_S, None):
            try:
                async with self.open(method, path, query, body, patience=patience) as answer:
                    return answer.headers, await answer.read(limit)
            except SandboxConnectionLost:
                if pause is None or not repeat or self._closed:
                    raise
            await asyncio.sleep(pause)
        raise AssertionError("unreachable")

    @asynccontextmanager
    async def open(
        self,
        method: str,
        path: str,
        query: Query | None = None,
        body: Body = b"",
        *,
        headers: Mapping[str, str] | None = None,
        patience: float = CALL_S,
    ) -> AsyncIterator[Answer]:
        """A good answer whose body is still to be read; its connection is kept only if that was done."""
        target = path + query_string(query)
        async with self.carry(method, target, body, headers=headers, patience=patience) as answer:
            if answer.status >= 300:
                raise agent_error(answer.status, await answer.read())
            yield answer

    @asynccontextmanager
    async def carry(
        self,
        method: str,
        target: str,
        body: Body = b"",
        *,
        headers: Mapping[str, str] | None = None,
        patience: float = CALL_S,
    ) -> AsyncIterator[Answer]:
        """Whatever the agent answers, good or bad: for who carries the calls of others. `target` is path and
        query as they are sent; `headers` may tell the Content-Length of a streamed body."""
        connection = await self._acquire()
        answer: Answer | None = None
        try:
            sent = {**self._headers, **headers} if headers else self._headers
            answer = await connection.call(method, target, sent, body, patience)
            yield answer
        finally:
            self._release(connection, answer)

    async def upgrade(
        self, method: str, path: str, query: Query | None, protocol: str
    ) -> tuple[dict[str, str], Streams]:
        """Turn a fresh connection into a raw one. The caller closes it."""
        answer, streams = await self.carry_upgrade(method, path + query_string(query), protocol)
        if answer.status != 101:
            try:
                raise agent_error(answer.status, await answer.read())
            finally:
                streams[1].transport.abort()
        return answer.headers, streams

    async def carry_upgrade(self, method: str, target: str, protocol: str) -> tuple[Answer, Streams]:
        """Whatever the agent answers, and the connection, which is a raw one when it answered 101. The caller
        closes it."""
        connection = Connection(await self._connect())
        headers = self._headers | {"Connection": "Upgrade", "Upgrade": protocol}
        try:
            answer = await connection.call(method, target, headers, b"", CALL_S)
        except BaseException:
            connection.close()
            raise
        return answer, (connection.reader, connection.writer)

    async def _acquire(self) -> Connection:
        while self._idle:
            connection = self._idle.pop()
            if connection.usable:
                return connection
            connection.close()
        return Connection(await self._connect())

    async def _connect(self) -> Streams:
        if self._closed:
            raise SandboxGone("this client is closed")
        try:
            async with asyncio.timeout(CONNECT_S):
                return await self.address.connect()
        except (FileNotFoundError, ConnectionRefusedError) as error:
            raise SandboxGone(
                f"no agent listens at {self.address.url}", hint="the sandbox has ended"
            ) from error
        except (OSError, TimeoutError) as error:
            raise SandboxConnectionLost(f"cannot reach the agent at {self.address.url}: {error!r}") from error

    def _release(self, connection: Connection, answer: Answer | None) -> None:
        reusable = answer is not None and answer.complete and answer.headers.get("connection") != "close"
        if reusable and connection.usable and not self._closed and len(self._idle) < _IDLE_MAX:
            self._idle.append(connection)
        else:
            connection.close()

    async def close(self) -> None:
        """Drop all idle connections; calls under way end by themselves."""
        self._closed = True
        while self._idle:
            self._idle.pop().close()


def query_string(query: Query | None) -> str:
    """`?name=value...`; text becomes the bytes it stands for (surrogateescape), None is left out. Raises
    FileError for what stands for none."""
    given = [(name, str(value)) for name, value in (query or {}).items() if value is not None]
    try:
        pairs = [f"{name}={quote_from_bytes(os.fsencode(text))}" for name, text in given]
    except UnicodeEncodeError as error:
        raise FileError("half of a surrogate pair stands for no byte that a path could have") from error
    return "?" + "&".join(pairs) if pairs else ""
