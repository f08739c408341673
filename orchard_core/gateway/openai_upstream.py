"""One OpenAI-compatible server over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from orchard_core.errors import ModelReplyMalformed, ModelTimeout, ModelUnavailable
from orchard_core.gateway.chat_tokens import ASK, TokenTally
from orchard_core.gateway.contract import UpstreamReply, UpstreamRequest
from orchard_core.gateway.json_text import JsonFault, dumps, loads
from orchard_core.gateway.openai_faults import Redactor, failure
from orchard_core.gateway.proxy_env import proxy_for
from orchard_core.gateway.sse import EventReader
from orchard_core.types.model import Dialect, UpstreamMode

MAX_REPLY = 256 << 20
"""Bytes of one answer at most."""


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
        self._client: aiohttp.ClientSession | None = None
        self._proxy = proxy_for(target.url)
        self._redact = Redactor([target.key, *target.headers.values()])
        self._headers = {
            "Content-Type": "application/json",
            "Accept-Encoding": "identity",
            **({"Authorization": f"Bearer {target.key}"} if target.key else {}),
            **target.headers,
        }

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
        async with self._sent(request, asked, stream=False) as response:
            with self._wire(request):
                body = await _read(response)
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
        async with self._sent(request, asked, stream=True) as response:
            if response.content_type != "text/event-stream":
                raise ModelReplyMalformed(
                    f"{self._target.url} answered a stream as {response.content_type!r}",
                    hint="the server does not stream, or a proxy stands between: check the base URL",
                )
            events = EventReader()
            with self._wire(request):
                async for piece in response.content.iter_any():
                    for data in events.feed(piece):
                        if data == b"[DONE]":
                            return
                        yield data
            if not events.empty:
                raise ModelReplyMalformed(
                    f"{self._target.url} ended its stream in the middle of an event",
                    hint="the server died or a proxy cut the connection: try again",
                )

    @asynccontextmanager
    async def _sent(
        self, request: UpstreamRequest, asked: frozenset[str] | None, *, stream: bool
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """A successful response. A server that refuses our own fields is asked once more without them."""
        plain = _with_usage(request.body, asked) if stream and asked is not None else request.body
        full = _with_ids(plain, asked) if self._asks and asked is not None else plain
        response = await self._post(request, full, stream)
        try:
            if response.status in _REFUSED and full is not plain and self._target.ids == "auto":
                response.release()
                response = await self._post(request, plain, stream)
                if response.status == 200:
                    self._asks = self._tells = False
            if response.status != 200:
                with self._wire(request):
                    raise failure(response, await _read(response), self._target.url, self._redact)
            yield response
        finally:
            # Whatever was not read to its end cannot be used again, and closing it ends the server's work.
            response.close() if not response.content.at_eof() else response.release()

    async def _post(self, request: UpstreamRequest, body: bytes, stream: bool) -> aiohttp.ClientResponse:
        with self._wire(request):
            return await self._session().post(
                self._target.url,
                data=body,
                headers=self._headers,
                allow_redirects=False,
                proxy=self._proxy,
                timeout=aiohttp.ClientTimeout(
                    total=min(request.timeout_s, self._target.timeout_s),
                    sock_connect=self._target.connect_timeout_s,
                    sock_read=self._target.idle_timeout_s if stream else None,
                ),
            )

    @contextmanager
    def _wire(self, request: UpstreamRequest) -> Iterator[None]:
        """What goes wrong on the wire, in our own words."""
        url = self._target.url
        try:
            yield
        except aiohttp.ConnectionTimeoutError as error:
            raise ModelUnavailable(
                f"{url} could not be reached within {self._target.connect_timeout_s:g} s",
                hint="is the server running, and reachable from here?",
            ) from error
        except aiohttp.SocketTimeoutError as error:
            limit = self._target.idle_timeout_s
            raise ModelTimeout(f"{url} sent nothing for {limit:g} s", limit_s=limit) from error
        except TimeoutError as error:
            limit = min(request.timeout_s, self._target.timeout_s)
            raise ModelTimeout(
                f"{url} did not finish its answer within {limit:g} s",
                limit_s=limit,
                hint="give the model a longer timeout_s, or ask for fewer tokens",
            ) from error
        except (aiohttp.ClientResponseError, aiohttp.http.HttpProcessingError) as error:
            raise ModelReplyMalformed(
                f"{url} does not speak HTTP as it should: {self._redact(str(error))}"
            ) from error
        except (aiohttp.ClientError, OSError) as error:
            raise ModelUnavailable(
                f"{url} could not be reached: {type(error).__name__}: {self._redact(str(error))}",
                hint="is the server running, and is the base URL right?",
            ) from error

    def _session(self) -> aiohttp.ClientSession:
        if self._client is None or self._client.closed:
            self._client = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=60),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=True,
                skip_auto_headers=("User-Agent",),
                read_bufsize=1 << 18,
            )
        return self._client

    def _learn(self, told: bool) -> None:
        if self._target.ids == "auto":
            self._tells = told

    async def close(self) -> None:
        """Close the connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()


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


async def _read(response: aiohttp.ClientResponse) -> bytes:
    parts: list[bytes] = []
    size = 0
    async for piece in response.content.iter_any():
        parts.append(piece)
        size += len(piece)
        if size > MAX_REPLY:
            raise ModelReplyMalformed(f"the model server's answer is larger than {MAX_REPLY} bytes")
    return parts[0] if len(parts) == 1 else b"".join(parts)
