"""An upstream that says what it was told to say, in the chat dialect."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import Any

from orchard_core.errors import ModelRejected, ModelReplyMalformed, ModelTimeout
from orchard_core.gateway.contract import UpstreamReply, UpstreamRequest
from orchard_core.testing.fakes.reply import FakeReply
from orchard_core.testing.fakes.tokens import render, spell
from orchard_core.types.model import Dialect, UpstreamMode, Usage, VersionSpan

LOGPROB = -0.5
"""Natural log-probability that is claimed for every sampled id."""

NextReply = Callable[[UpstreamRequest], FakeReply]
"""Chooses the answer to a request."""


class FakeUpstream:
    """Honours `orchard_core.Upstream`. In `chat` mode it reports ids and log-probabilities."""

    def __init__(
        self, next_reply: NextReply, *, mode: UpstreamMode = UpstreamMode.CHAT, version: str = "0"
    ) -> None:
        self._next = next_reply
        self._mode = mode
        self._version = version
        self.requests: list[UpstreamRequest] = []
        """Every request seen."""

    @property
    def mode(self) -> UpstreamMode:
        """See Upstream."""
        return self._mode

    @property
    def dialects(self) -> frozenset[Dialect]:
        """See Upstream."""
        return frozenset({Dialect.CHAT})

    async def complete(self, request: UpstreamRequest) -> UpstreamReply:
        """See Upstream."""
        asked, reply = await self._answer(request)
        prompt, sampled = render(asked["messages"]), spell(reply.message())
        usage = reply.usage or Usage(input=len(prompt), output=len(sampled))
        choice = {"index": 0, "message": reply.message(), "finish_reason": reply.finish_reason}
        body = reply.body or json.dumps(_envelope(request, asked, choice, usage)).encode()
        tells = self._tells(reply)
        return UpstreamReply(
            body=body,
            prompt_tokens=prompt if tells else None,
            completion_tokens=sampled if tells else None,
            logprobs=[LOGPROB] * len(sampled) if tells else None,
            versions=(VersionSpan(start=0, stop=len(sampled), version=self._version),) if tells else (),
            usage=usage,
        )

    async def stream(self, request: UpstreamRequest) -> AsyncIterator[bytes]:
        """See Upstream."""
        asked, reply = await self._answer(request)
        if reply.body is not None:
            yield reply.body
            return
        prompt, sampled = render(asked["messages"]), spell(reply.message())
        usage = reply.usage or Usage(input=len(prompt), output=len(sampled))
        for place, choice in enumerate(_pieces(reply, sampled if self._tells(reply) else None)):
            piece = _envelope(request, asked, choice, None)
            if place == 0 and self._tells(reply):
                piece["prompt_token_ids"] = list(prompt)
            yield json.dumps(piece).encode()
        last = _envelope(request, asked, None, usage)
        yield json.dumps(last).encode()

    def _tells(self, reply: FakeReply) -> bool:
        return self._mode is not UpstreamMode.TEXT and reply.body is None

    async def close(self) -> None:
        """See Upstream."""

    async def _answer(self, request: UpstreamRequest) -> tuple[Mapping[str, Any], FakeReply]:
        self.requests.append(request)
        try:
            asked = json.loads(request.body)
        except ValueError as error:
            raise ModelRejected(f"the request is not JSON: {error}", status=400) from error
        if not isinstance(asked, dict) or not isinstance(asked.get("messages"), list):
            raise ModelRejected("the request has no list of messages", status=400)
        reply = self._next(request)
        if reply.delay_s > request.timeout_s:
            await asyncio.sleep(request.timeout_s)
            raise ModelTimeout(f"no answer within {request.timeout_s:g} s", limit_s=request.timeout_s)
        await asyncio.sleep(reply.delay_s)
        if reply.error is not None:
            raise reply.error
        return asked, reply


def read_body(reply: UpstreamReply) -> Mapping[str, Any]:
    """The reply's JSON. Raises ModelReplyMalformed."""
    try:
        body = json.loads(reply.body)
    except ValueError as error:
        raise ModelReplyMalformed(f"the answer is not JSON: {error}") from error
    if not isinstance(body, dict):
        raise ModelReplyMalformed("the answer is not a JSON object")
    return body


def _envelope(
    request: UpstreamRequest, asked: Mapping[str, Any], choice: Mapping[str, Any] | None, usage: Usage | None
) -> dict[str, Any]:
    body: dict[str, Any] = {
        "id": f"fake-{request.index}",
        "object": "chat.completion",
        "created": 0,
        "model": asked.get("model", "fake"),
        "choices": [] if choice is None else [choice],
    }
    if choice is None or "delta" in choice:
        body["object"] = "chat.completion.chunk"
    if usage is not None:
        read = usage.cache_read
        body["usage"] = {
            "prompt_tokens": usage.input + read + usage.cache_write,
            "completion_tokens": usage.output,
            "total_tokens": usage.total,
            "prompt_tokens_details": {"cached_tokens": read},
        }
    return body


def _pieces(reply: FakeReply, sampled: Sequence[int] | None) -> Iterator[dict[str, Any]]:
    """The answer's pieces; the first tells all sampled ids, when there are any to tell."""

    def piece(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        return {"index": 0, "delta": delta, "finish_reason": finish}

    first_piece = piece({"role": "assistant", "content": ""})
    if sampled is not None:
        first_piece["token_ids"] = list(sampled)
        first_piece["logprobs"] = {"content": [{"logprob": LOGPROB}] * len(sampled)}
    yield first_piece
    half = len(reply.text) // 2
    for text in (reply.text[:half], reply.text[half:]):
        if text:
            yield piece({"content": text})
    for index, call in enumerate(reply.calls):
        first = {"name": call.name, "arguments": ""}
        yield piece({"tool_calls": [{"index": index, "id": call.id, "type": "function", "function": first}]})
        yield piece({"tool_calls": [{"index": index, "function": {"arguments": call.arguments}}]})
    yield piece({}, reply.finish_reason)
