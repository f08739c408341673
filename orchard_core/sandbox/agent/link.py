"""Calls to one agent: the ways to it, bounded repeats, typed errors."""

from __future__ import annotations

import asyncio
import json
import os
import random
from collections.abc import AsyncIterable, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote_from_bytes

from orchard_core.errors import (
    AgentRefused,
    FileError,
    NotAnAgent,
    SandboxConnectionLost,
    SandboxError,
    SandboxGone,
    ServiceOverloaded,
)
from orchard_core.sandbox.agent.address import Streams
from orchard_core.sandbox.agent.faults import REFUSAL_MAX, agent_error
from orchard_core.sandbox.agent.route import Route
from orchard_core.sandbox.agent.understood import understood
from orchard_core.sandbox.agent.watched import watched_call
from orchard_core.sandbox.agent.wire import ANSWER_MAX, Answer, Body, Connection
from orchard_core.types.sandbox import AgentEndpoint

CALL_S = 30.0
"""A call whose answer has not begun after this many seconds is lost."""
JSON_MAX = 1 << 20
"""Bytes of an answer that is JSON: parsed it takes up to thirty times as many."""
CONNECT_S = 10.0
_CONNECT_FIRST_S = 3.0
"""Where there is another way, this one is given less time."""
_PAUSES_S = (0.05, 0.2, 0.5, 1.0, 2.0)
_SERVICE_PAUSES_S = (*_PAUSES_S, 4.0, 8.0, 8.0, 8.0)
"""A service that restarts is away for a while, and what runs in its sandboxes goes on."""
_OVERLOADED_S = 120.0
"""How long a service that has no room is asked again."""
_RETRY_AFTER_MAX_S = 30.0
_LOSSES = 2
"""Calls in a row that break on a way to which there is another, until it is given up."""
_LOST_FOR_GOOD = (401, 421)
"""The token has ended, or another's agent answers there now."""
_UNREACHED = (AgentRefused, SandboxGone, SandboxConnectionLost)
"""Nothing was sent: nobody, or another, listens there."""
_FOR_ALL = ("/v1/exec", "/v1/files", "/v1/tree")
"""What every token may use; a refusal there has to do with the command or the file."""

Query = Mapping[str, object]
"""Text, numbers, None for what is left out, or a tuple of these for what is repeated."""


class AgentLink:
    """Everything above it speaks of calls, nothing below it of agents."""

    def __init__(self, endpoint: AgentEndpoint, *, through: AgentEndpoint | None = None) -> None:
        """`through` is a second way, taken when the first cannot be reached, and for what its token may not
        do. Nothing is done twice: a call changes ways only when it was not carried out."""
        self.endpoint = endpoint
        connect_s = CONNECT_S if through is None else _CONNECT_FIRST_S
        self._routes = [Route(endpoint, connect_s=connect_s)]
        if through is not None:
            self._routes.append(Route(through, connect_s=CONNECT_S))
        self._all = tuple(self._routes)
        self._closed = False

    @property
    def direct(self) -> bool:
        """Calls go to the agent itself, without a service between."""
        return not self._routes[0].service

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
        when nothing listens, SandboxConnectionLost (of which NotAnAgent is never worth a repeat),
        ServiceOverloaded when a service has no room for long.
        """
        pauses = iter(_SERVICE_PAUSES_S if self._routes[-1].service else _PAUSES_S)
        while True:
            try:
                async with self.open(method, path, query, body, patience=patience) as answer:
                    return answer.headers, await answer.read(limit)
            except SandboxConnectionLost as error:
                pause = next(pauses, None)
                if pause is None or not repeat or self._closed or isinstance(error, NotAnAgent):
                    raise
            await asyncio.sleep(pause)

    async def ask(
        self,
        method: str,
        path: str,
        query: Query | None = None,
        body: bytes = b"",
        *,
        repeat: bool = False,
        patience: float = CALL_S,
        limit: int = JSON_MAX,
    ) -> Any:
        """The JSON of a good answer, whatever it may be. Raises as `call`, and NotAnAgent."""
        try:
            _, said = await self.call(
                method, path, query, body, repeat=repeat, patience=patience, limit=limit
            )
        except FileError as error:  # the only one that such calls know: too many bytes
            raise NotAnAgent(f"no agent tells so much: {error.message}") from error
        with understood():
            return json.loads(said)

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
        watched = _watched(body)
        room = _Room()
        while True:
            async with self.carry(method, target, watched, headers=headers, patience=patience) as answer:
                if answer.status < 300:
                    yield answer
                    return
                error = await _error(answer)
            if not isinstance(error, ServiceOverloaded) or _begun(watched) or self._closed:
                raise error
            await room.wait(error)

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
        watched = _watched(body)
        with watched_call(method, target) as call:
            more = {**call.headers, **(headers or {})}
            route, connection = await self._acquire()
            answer: Answer | None = None
            try:
                while True:
                    sent = {**route.headers, **more} if more else route.headers
                    answer = await self._sent(route, connection, method, target, sent, watched, patience)
                    other = self._other(route)
                    if other is None or _begun(watched) or not _refused(answer, target):
                        break
                    if answer.status in _LOST_FOR_GOOD:
                        self._gave_up(route)
                    connection.close()
                    route, connection = other, await other.acquire()
                call.answered(answer.status)
                yield answer
            finally:
                route.release(connection, answer)

    async def _sent(
        self,
        route: Route,
        connection: Connection,
        method: str,
        target: str,
        headers: Mapping[str, str],
        body: Body,
        patience: float,
    ) -> Answer:
        try:
            answer = await connection.call(method, route.target(target), headers, body, patience)
        except SandboxConnectionLost:
            route.losses += 1
            if route.losses >= _LOSSES:
                self._gave_up(route)
            raise
        route.losses = 0
        answer.of_service = route.service
        return answer

    async def upgrade(
        self, method: str, path: str, query: Query | None, protocol: str
    ) -> tuple[dict[str, str], Streams]:
        """Turn a fresh connection into a raw one. The caller closes it."""
        target = path + query_string(query)
        room = _Room()
        while True:
            answer, streams = await self.carry_upgrade(method, target, protocol)
            if len(self._routes) > 1 and _refused(answer, target):
                streams[1].transport.abort()
                answer, streams = await self._routes[-1].upgrade(method, target, protocol, CALL_S)
            if answer.status == 101:
                return answer.headers, streams
            try:
                error = await _error(answer)
            finally:
                streams[1].transport.abort()
            if not isinstance(error, ServiceOverloaded):
                raise error
            await room.wait(error)

    async def carry_upgrade(self, method: str, target: str, protocol: str) -> tuple[Answer, Streams]:
        """Whatever the agent answers, and the connection, which is a raw one when it answered 101. The caller
        closes it."""
        while True:
            route = self._routes[0]
            try:
                return await route.upgrade(method, target, protocol, CALL_S)
            except _UNREACHED:
                if not self._gave_up(route):
                    raise

    async def connect(self) -> Streams:
        """A bare connection to the agent, for who speaks its protocol himself. The caller closes it."""
        return await self._routes[0].connect()

    async def _acquire(self) -> tuple[Route, Connection]:
        """A connection by the first way that can be had. Nothing was sent by the others."""
        while True:
            route = self._routes[0]
            try:
                return route, await route.acquire()
            except _UNREACHED:
                if not self._gave_up(route):
                    raise

    def _gave_up(self, route: Route) -> bool:
        """Whether there is another way. A route that cannot be reached is not tried again."""
        if self._closed or route is self._all[-1]:
            return False
        if route in self._routes:
            self._routes.remove(route)
        return True

    def _other(self, route: Route) -> Route | None:
        return None if route is self._all[-1] else self._all[-1]

    def drop_idle(self) -> None:
        """Close the connections that no call uses; the next call opens another."""
        for route in self._all:
            route.drop_idle()

    async def close(self) -> None:
        """Drop all idle connections; calls under way end by themselves."""
        self._closed = True
        for route in self._all:
            await route.close()


async def _error(answer: Answer) -> SandboxError:
    """What a bad answer stands for. Raises NotAnAgent for one without an end."""
    try:
        said = await answer.read(REFUSAL_MAX)
    except FileError as error:
        raise NotAnAgent(f"no agent refuses a call in so many words: {error.message}") from error
    return agent_error(answer.status, said, answer.headers, of_service=answer.of_service)


def _refused(answer: Answer, target: str) -> bool:
    """The agent did nothing: another's token, another's id, or a token that is not for this."""
    return answer.status in _LOST_FOR_GOOD or (answer.status == 403 and not target.startswith(_FOR_ALL))


class _Watched:
    """A streamed body that tells whether any of it was taken."""

    def __init__(self, body: AsyncIterable[bytes]) -> None:
        self._body = body
        self.begun = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        self.begun = True
        async for piece in self._body:
            yield piece


def _watched(body: Body) -> bytes | _Watched:
    return body if isinstance(body, (bytes, _Watched)) else _Watched(body)


def _begun(body: bytes | _Watched) -> bool:
    return isinstance(body, _Watched) and body.begun


class _Room:
    """The waits of one call for a service that has no room."""

    def __init__(self) -> None:
        self._waited = 0.0

    async def wait(self, error: ServiceOverloaded) -> None:
        """As long as the service asked, with jitter. Raises the error when it was long enough."""
        if self._waited > _OVERLOADED_S:
            raise error
        asked = min(_RETRY_AFTER_MAX_S, error.retry_after_s or 1.0)
        pause = asked * random.uniform(1.0, 1.5)  # noqa: S311 - spreads callers, guards nothing
        self._waited += pause
        await asyncio.sleep(pause)


def query_string(query: Query | None) -> str:
    """`?name=value...`; text becomes the bytes it stands for (surrogateescape), None is left out. Raises
    FileError for what stands for none."""
    given = [
        (name, str(one))
        for name, value in (query or {}).items()
        for one in (value if isinstance(value, tuple) else (value,))
        if one is not None
    ]
    try:
        pairs = [f"{name}={quote_from_bytes(os.fsencode(text))}" for name, text in given]
    except UnicodeEncodeError as error:
        raise FileError("half of a surrogate pair stands for no byte that a path could have") from error
    return "?" + "&".join(pairs) if pairs else ""
