"""One OpenAI-compatible server over HTTP."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from orchard_core.errors import ModelReplyMalformed, ModelTimeout
from orchard_core.gateway.chat.tokens import ASK, TokenTally
from orchard_core.gateway.contract import UpstreamReply, UpstreamRequest
from orchard_core.gateway.deadline import Deadline
from orchard_core.gateway.json_text import JsonFault, dumps, loads
from orchard_core.gateway.openai_faults import Redactor, failure
from orchard_core.gateway.pool import Pool, Post
from orchard_core.gateway.sse import EventReader
from orchard_core.gateway.wire import Response
from orchard_core.types.model import Dialect, UpstreamMode


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A server and how to speak to it."""

    url: str
    """Of chat completions."""
    key: str = field(repr=False)
    """Its key; empty: none is sent."""
    headers: Mapping[str, str] = field(repr=False)
    """Further headers."""
    timeout_s: float
    """For a whole answer, seconds."""
    connect_timeout_s: float
    """To reach it, seconds."""
    idle_timeout_s: float
    """Between pieces of a stream, seconds."""
    ids: str
    """auto, on or off."""


class OpenAIUpstream:
    """Honours `orchard_core.Upstream`."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._asks = target.ids != "off"
        self._tells = self._asks
        self._redact = Redactor([target.key, *target.headers.values()])
        headers = {"Authorization": f"Bearer {target.key}"} if target.key else {}
        self._pool = Pool(
            target.url, {**headers, **target.headers}, connect_timeout_s=target.connect_timeout_s
        )

    @property
    def mode(self) -> UpstreamMode:
        """`chat` until the server turns out not to tell ids."""
        return UpstreamMode.CHAT if self._tells else UpstreamMode.TEXT

    @property
    def dialects(self) -> frozenset[Dialect]:
        """Chat."""
        return frozenset({Dialect.CHAT})

    async def complete(self, request: UpstreamRequest) -> UpstreamReply:
        """The whole answer."""
        asked = _asked(request.body) if self._asks else None
        limit = min(request.timeout_s, self._target.timeout_s)
        try:
            with Deadline(limit):
                post = await self._sent(request, asked, stream=False)
                try:
                    body = await post.response.read()
                finally:
                    post.end()
        except TimeoutError as error:
            raise self._late(limit) from error
        if asked is None:
            return UpstreamReply(body=body)
        return self._split(body, asked)

    def _split(self, body: bytes, asked: frozenset[str]) -> UpstreamReply:
        try:
            reply = loads(body)
        except JsonFault:
            return UpstreamReply(body=body)
        if not isinstance(reply, dict):
            return UpstreamReply(body=body)
        tally = TokenTally()
        changed = tally.take(reply, asked)
        prompt, completion, logprobs = tally.settled()
        self._learn(completion is not None and logprobs is not None)
        return UpstreamReply(
            body=dumps(reply) if changed else body,
            prompt_tokens=prompt,
            completion_tokens=completion,
            logprobs=logprobs,
        )

    async def stream(self, request: UpstreamRequest) -> AsyncIterator[bytes]:
        """The answer's events."""
        asked = _asked(request.body)
        limit = min(request.timeout_s, self._target.timeout_s)
        try:
            with Deadline(limit):
                post = await self._sent(request, asked, stream=True)
                try:
                    async with aclosing(self._events(post.response)) as events:
                        async for data in events:
                            yield data
                finally:
                    post.end()
        except TimeoutError as error:
            raise self._late(limit) from error

    async def _events(self, response: Response) -> AsyncGenerator[bytes]:
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
                yield data
        if not events.empty:
            raise ModelReplyMalformed(
                f"{self._pool.name} ended its stream in the middle of an event",
                hint="the server died or a proxy cut the connection: try again",
            )

    async def _sent(self, request: UpstreamRequest, asked: frozenset[str] | None, *, stream: bool) -> Post:
        """A post with a successful response, for the caller to end. A server that refuses our own fields is
        asked once more without them."""
        plain = _with_usage(request.body, asked) if stream and asked is not None else request.body
        full = _with_ids(plain, asked) if self._asks and asked is not None else plain
        post = self._pool.post(full)
        response = await post.begin()
        if response.status in _REFUSED and full is not plain and self._target.ids == "auto":
            try:
                await response.read()
            finally:
                post.end()
            post = self._pool.post(plain)
            await post.begin()
            await self._check(post)
            self._asks = self._tells = False
        else:
            await self._check(post)
        return post

    def _late(self, limit_s: float) -> ModelTimeout:
        return ModelTimeout(
            f"{self._pool.name} did not finish its answer within {limit_s:g} s",
            limit_s=limit_s,
            hint="give the model a longer timeout_s, or ask for fewer tokens",
        )

    async def _check(self, post: Post) -> None:
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

    def _learn(self, told: bool) -> None:
        if self._target.ids == "auto":
            self._tells = told

    async def close(self) -> None:
        """Close the connections."""
        self._pool.close()


_REFUSED = frozenset({400, 422})
"""How servers refuse a field they do not know."""


def _asked(body: bytes) -> frozenset[str]:
    """Which of the fields we might add the harness has set itself."""
    names = [name for name in (*ASK, "stream_options") if f'"{name}"'.encode() in body]
    if not names:
        return frozenset()
    try:
        return frozenset(names) & frozenset(loads(body))
    except (JsonFault, TypeError):
        return frozenset(names)


def _with_ids(body: bytes, asked: frozenset[str]) -> bytes:
    return _with(body, {name: value for name, value in ASK.items() if name not in asked})


def _with_usage(body: bytes, asked: frozenset[str]) -> bytes:
    return body if "stream_options" in asked else _with(body, {"stream_options": {"include_usage": True}})


def _with(body: bytes, fields: Mapping[str, Any]) -> bytes:
    """The body with further fields, spliced into its text: nothing of it is parsed or written anew."""
    if not fields:
        return body
    rest = body.lstrip()[1:]
    comma = b"" if rest.lstrip()[:1] == b"}" else b","
    return dumps(fields)[:-1] + comma + rest
