"""Chat completions of a server that may tell token ids."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from typing import Any, Literal

from orchard_core.gateway.chat.tokens import ASK, TokenTally
from orchard_core.gateway.contract import UpstreamReply, UpstreamRequest
from orchard_core.gateway.deadline import Deadline
from orchard_core.gateway.endpoint import Endpoint
from orchard_core.gateway.json_text import JsonFault, dumps, loads
from orchard_core.gateway.pool import Post

Ids = Literal["auto", "on", "off"]
"""Whether ids are asked for: `auto` goes without when the server refuses, `on` fails."""


class ChatEndpoint:
    """Honours `complete` and `stream` of `orchard_core.Upstream`."""

    def __init__(self, endpoint: Endpoint, ids: Ids) -> None:
        self._endpoint = endpoint
        self._ids = ids
        self._asks = ids != "off"
        self.tells = self._asks
        """The server tells ids, or has not been asked yet."""

    async def complete(self, request: UpstreamRequest) -> UpstreamReply:
        """The whole answer."""
        asked = _asked(request.body) if self._asks else None
        limit = self._endpoint.limit_s(request)
        try:
            with Deadline(limit):
                post = await self._sent(request, asked, stream=False)
                try:
                    body = await self._endpoint.whole(post)
                finally:
                    post.end()
        except TimeoutError as error:
            raise self._endpoint.late(limit) from error
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
        if self._ids == "auto":
            self.tells = completion is not None and logprobs is not None
        return UpstreamReply(
            body=dumps(reply) if changed else body,
            prompt_tokens=prompt,
            completion_tokens=completion,
            logprobs=logprobs,
        )

    async def stream(self, request: UpstreamRequest) -> AsyncIterator[bytes]:
        """The answer's events."""
        asked = _asked(request.body)
        limit = self._endpoint.limit_s(request)
        try:
            with Deadline(limit):
                post = await self._sent(request, asked, stream=True)
                try:
                    async with aclosing(self._endpoint.events(post.response)) as events:
                        async for data in events:
                            yield data
                finally:
                    post.end()
        except TimeoutError as error:
            raise self._endpoint.late(limit) from error

    async def _sent(self, request: UpstreamRequest, asked: frozenset[str] | None, *, stream: bool) -> Post:
        """A post with a successful response, for the caller to end. A server that refuses our own fields is
        asked once more without them."""
        plain = _with_usage(request.body, asked) if stream and asked is not None else request.body
        full = _with_ids(plain, asked) if self._asks and asked is not None else plain
        post = self._endpoint.post(full, {})
        response = await post.begin()
        if response.status in _REFUSED and full is not plain and self._ids == "auto":
            try:
                await response.read()
            finally:
                post.end()
            post = await self._endpoint.open(plain, {})
            self._asks = self.tells = False
        else:
            await self._endpoint.check(post)
        return post

    def close(self) -> None:
        """Close the connections."""
        self._endpoint.close()


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
