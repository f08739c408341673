"""The model of a replayed rollout, as the gateway sees it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Any

from orchard_core.gateway.contract import (
    Model,
    Renderer,
    SessionContext,
    TokenUpstream,
    Upstream,
    UpstreamReply,
    UpstreamRequest,
)
from orchard_core.gateway.json_text import dumps, loads
from orchard_core.rollout.branching.recorded import CODECS, RecordedCall
from orchard_core.rollout.branching.replay import Replay
from orchard_core.types.model import Dialect, Price, UpstreamMode


class ReplayingModel:
    """Honours `orchard_core.Model`. Each session is promised a replay beforehand: it hears the recorded
    answers first, then the model's own. One object stands for the model in all of them, so that its bound on
    calls in flight holds over all."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._promised: dict[str, Replay] = {}

    def promise(self, session: str, replay: Replay) -> None:
        """The session whose context names this rollout gets this replay."""
        self._promised[session] = replay

    @property
    def name(self) -> str:
        """The model's."""
        return self._model.name

    @property
    def price(self) -> Price | None:
        """The model's; what was replayed cost nothing again, whatever the session's account says."""
        return self._model.price

    @property
    def concurrency(self) -> int | None:
        """The model's."""
        return self._model.concurrency

    def upstream(self, context: SessionContext) -> Upstream:
        """See Model."""
        replay = self._promised.pop(context.rollout)
        upstream = self._model.upstream(context)
        made = _TokenReplay if isinstance(upstream, TokenUpstream) else _Replay
        return made(upstream, replay, seed=context.seed)

    async def close(self) -> None:
        """The model is not ours to close."""


class _Replay:
    """Honours `orchard_core.Upstream`."""

    def __init__(self, upstream: Upstream, replay: Replay, *, seed: int) -> None:
        self._upstream = upstream
        self._replay = replay
        self._seed = seed

    @property
    def mode(self) -> UpstreamMode:
        return self._upstream.mode

    @property
    def dialects(self) -> frozenset[Dialect]:
        return self._upstream.dialects

    async def complete(self, request: UpstreamRequest) -> UpstreamReply:
        recorded = self._replay.take(request)
        if recorded is None:
            return await self._upstream.complete(_reseeded(request, self._seed))
        return _reply(recorded, request)

    async def stream(self, request: UpstreamRequest) -> AsyncIterator[bytes]:
        recorded = self._replay.take(request)
        if recorded is None:
            async for payload in self._upstream.stream(_reseeded(request, self._seed)):
                yield payload
            return
        for payload in _pieces(recorded, request):
            yield payload

    async def close(self) -> None:
        """The upstream is the model's, which outlives this session."""


class _TokenReplay(_Replay):
    """The same for an upstream that takes token ids: the gateway hears the very ids that were recorded."""

    @property
    def renderer(self) -> Renderer:
        assert isinstance(self._upstream, TokenUpstream)
        return self._upstream.renderer


def _reseeded(request: UpstreamRequest, seed: int) -> UpstreamRequest:
    """A harness that sends a seed would have every continuation sampled alike: it is replaced."""
    if b'"seed"' not in request.body:
        return request
    asked = loads(request.body)
    if not isinstance(asked, dict) or asked.get("seed") is None:
        return request
    return replace(request, body=dumps({**asked, "seed": seed}))


def _reply(recorded: RecordedCall, request: UpstreamRequest) -> UpstreamReply:
    call = recorded.call
    body = CODECS[request.dialect].from_message(
        recorded.message,
        model=str(loads(request.body).get("model", "")),
        finish_reason=call.finish_reason or "stop",
        usage=call.usage,
    )
    return UpstreamReply(
        body=body,
        prompt_tokens=recorded.prompt,
        completion_tokens=call.completion_tokens,
        logprobs=call.logprobs,
        versions=call.versions,
        usage=call.usage,
    )


def _pieces(recorded: RecordedCall, request: UpstreamRequest) -> Iterator[bytes]:
    """The answer as a stream; ids travel in its first piece, as vLLM sends them."""
    reply = _reply(recorded, request)
    first, *rest = CODECS[request.dialect].chunks(reply)
    if request.dialect is Dialect.CHAT and reply.completion_tokens is not None:
        first = _with_ids(first, reply)
    yield first
    yield from rest


def _with_ids(payload: bytes, reply: UpstreamReply) -> bytes:
    piece: dict[str, Any] = loads(payload)
    choice = piece["choices"][0]
    if reply.prompt_tokens is not None:
        piece["prompt_token_ids"] = list(reply.prompt_tokens)
    choice["token_ids"] = list(reply.completion_tokens or ())
    if reply.logprobs is not None:
        choice["logprobs"] = {"content": [{"logprob": each} for each in reply.logprobs]}
    return dumps(piece)
