"""One URL of a model server, to which requests of one dialect go as they are."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field

from orchard_core.errors import ModelReplyMalformed, ModelTimeout
from orchard_core.gateway.contract import UpstreamReply, UpstreamRequest
from orchard_core.gateway.deadline import Deadline
from orchard_core.gateway.openai_faults import Redactor, failure
from orchard_core.gateway.pool import Pool, Post
from orchard_core.gateway.sse import EventReader
from orchard_core.gateway.wire import Response


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A URL and how to speak to it."""

    url: str
    """Where requests are posted."""
    secrets: frozenset[str] = field(default=frozenset(), repr=False)
    """Keys and the like, to be kept out of error messages."""
    headers: Mapping[str, str] = field(repr=False)
    """Headers of every request, the key's included."""
    defaults: Mapping[str, str] = field(default_factory=dict)
    """Headers of requests whose harness sends none of that name."""
    timeout_s: float
    """For a whole answer, seconds."""
    connect_timeout_s: float
    """To reach it, seconds."""
    idle_timeout_s: float
    """Between pieces of a stream, seconds."""


class Endpoint:
    """Honours `complete` and `stream` of `orchard_core.Upstream`; the rest is for dialects that do more."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._redact = Redactor(target.secrets)
        self._fixed = frozenset(name.lower() for name in target.headers)
        self._pool = Pool(target.url, target.headers, connect_timeout_s=target.connect_timeout_s)

    async def complete(self, request: UpstreamRequest) -> UpstreamReply:
        """The whole answer."""
        limit = self.limit_s(request)
        try:
            with Deadline(limit):
                post = await self.open(request.body, request.headers)
                try:
                    return UpstreamReply(body=await self.whole(post))
                finally:
                    post.end()
        except TimeoutError as error:
            raise self.late(limit) from error

    async def stream(self, request: UpstreamRequest) -> AsyncIterator[bytes]:
        """The data of the answer's events."""
        limit = self.limit_s(request)
        try:
            with Deadline(limit):
                post = await self.open(request.body, request.headers)
                try:
                    async with aclosing(self.events(post.response)) as events:
                        async for data in events:
                            yield data
                finally:
                    post.end()
        except TimeoutError as error:
            raise self.late(limit) from error

    def limit_s(self, request: UpstreamRequest) -> float:
        """Time for the whole answer, seconds."""
        return min(request.timeout_s, self._target.timeout_s)

    async def open(self, body: bytes, headers: Mapping[str, str]) -> Post:
        """A post with a successful response, for the caller to end. Raises ModelError."""
        post = self.post(body, headers)
        await post.begin()
        await self.check(post)
        return post

    def post(self, body: bytes, headers: Mapping[str, str]) -> Post:
        """An exchange that is not begun. Of one header, the configured value wins over the harness's."""
        given = {**self._target.defaults, **headers}
        return self._pool.post(
            body, {name: value for name, value in given.items() if name not in self._fixed}
        )

    async def check(self, post: Post) -> None:
        """Ends the post and raises ModelError unless it succeeded."""
        response = post.response
        if response.status == 200 and response.headers.get("content-encoding", "identity") == "identity":
            return
        try:
            if response.status != 200:
                raise failure(response, await response.read(), self._pool.name, self._redact)
            raise ModelReplyMalformed(
                f"{self._pool.name} answered compressed, though it was asked not to",
                hint="a proxy stands between: check the base URL",
            )
        finally:
            post.end()

    async def whole(self, post: Post) -> bytes:
        """The body of an answer in one piece."""
        return self._redact.answer(await post.response.read())

    async def events(self, response: Response) -> AsyncGenerator[bytes]:
        """The data of each event, up to `[DONE]` or the end."""
        kind = response.headers.get("content-type", "")
        if not kind.startswith("text/event-stream"):
            raise ModelReplyMalformed(
                f"{self._pool.name} answered a stream as {kind!r}",
                hint="the server does not stream, or a proxy stands between: check the base URL",
            )
        events = EventReader()
        async for piece in response.pieces(self._target.idle_timeout_s):
            for data in events.feed(piece):
                if data == b"[DONE]":
                    await response.drain()
                    return
                yield self._redact.answer(data)
        if not events.empty:
            raise ModelReplyMalformed(
                f"{self._pool.name} ended its stream in the middle of an event",
                hint="the server died or a proxy cut the connection: try again",
            )

    def late(self, limit_s: float) -> ModelTimeout:
        """The error of an answer that took too long."""
        return ModelTimeout(
            f"{self._pool.name} did not finish its answer within {limit_s:g} s",
            limit_s=limit_s,
            hint="give the model a longer timeout_s, or ask for fewer tokens",
        )

    def close(self) -> None:
        """Close the connections."""
        self._pool.close()
