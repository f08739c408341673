"""One call while it is under way, and its record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from orchard_core.gateway.conversation import Conversation, Head, Heard
from orchard_core.gateway.dialect import Answer
from orchard_core.gateway.tokens import common_prefix
from orchard_core.types.model import (
    CallError,
    CallTimings,
    Dialect,
    MessageRefs,
    ModelCall,
    Price,
    Retry,
    TokenRefs,
    Usage,
    VersionSpan,
)


@dataclass(slots=True, kw_only=True)
class CallRecord:
    """What is gathered of a call. It becomes a ModelCall once, when someone asks."""

    index: int
    """Order of arrival."""
    dialect: Dialect
    """What the harness spoke."""
    wire: Dialect
    """What the upstream is spoken to in."""
    dropped: Mapping[str, int]
    """Fields that the translation between the two left out."""
    streamed: bool
    """The harness asked for SSE."""
    params: str
    """The request's other fields, JSON text."""
    refs: MessageRefs
    """The request's messages, stored."""
    tools: str | None
    """Content hash of the tools."""
    started_at: float
    """Seconds since the epoch."""
    answer: Answer = field(default_factory=Answer)
    """What came, as far as it came."""
    versions: tuple[VersionSpan, ...] = ()
    """Policy versions."""
    retries: list[Retry] = field(default_factory=list)
    """Failed attempts."""
    error: CallError | None = None
    """Why there is no answer."""
    waited_s: float = 0.0
    """Time not charged to the task, seconds."""
    first_token_s: float | None = None
    """From sending to the first piece, seconds."""
    total_s: float = 0.0
    """From arrival to the end, seconds."""
    usage: Usage = field(default_factory=Usage)
    """Settled by `settle`."""
    cost_usd: float | None = None
    """Settled by `settle`."""
    response: str | None = None
    """Content hash of the answer's message, settled by `settle`."""
    prompt: TokenRefs | None = None
    """The prompt's ids, settled by `settle`."""

    def settle(self, conversation: Conversation, heard: Heard, price: Price | None) -> None:
        """The call is over: store its answer and let later calls build on it."""
        answer = self.answer
        if answer.message is not None:
            self.response = conversation.store("assistant", answer.message)
            if self.wire is not self.dialect:
                conversation.said.add(answer.message)
        known = self._usage()
        self.usage = known or Usage()
        self.cost_usd = self._cost(price, known)
        self.prompt = self._prompt(heard.base)
        conversation.advance(self._head(heard), heard)
        answer.prompt = None  # kept as a change to the base; whole prompts would add up quadratically

    def _usage(self) -> Usage | None:
        answer = self.answer
        if answer.usage is not None:
            return answer.usage
        if answer.completion is not None:
            return Usage(input=len(answer.prompt or ()), output=len(answer.completion))
        return None

    def _cost(self, price: Price | None, known: Usage | None) -> float | None:
        """None when the price or the counts are unknown; what is free costs 0.0 whatever the counts."""
        if price is None:
            return None
        if known is None:
            refused = self.error is not None and self.error.kind in _UNBILLED
            return 0.0 if refused or price.cost(_EVERY) == 0.0 else None
        return price.cost(known)

    def _prompt(self, base: Head | None) -> TokenRefs | None:
        prompt = self.answer.prompt
        if prompt is None:
            return None
        keep = common_prefix(prompt, base.tokens) if base and base.tokens is not None else 0
        if base is None or keep == 0:
            return TokenRefs(added=tuple(prompt))
        return TokenRefs(base=base.index, keep=keep, added=tuple(prompt[keep:]))

    def _head(self, heard: Heard) -> Head:
        answer = self.answer
        tokens = None
        if answer.prompt is not None:
            tokens = answer.prompt + answer.completion if answer.completion is not None else answer.prompt
        return Head(
            index=self.index,
            sent=heard.sent,
            answer=answer.message,
            complete=self.error is None,
            prompt=len(answer.prompt or ()),
            tokens=tokens,
        )

    def model_call(self) -> ModelCall:
        """The record as it is stored."""
        answer = self.answer
        return ModelCall(
            index=self.index,
            dialect=self.dialect,
            wire=None if self.wire is self.dialect else self.wire,
            dropped=self.dropped,
            streamed=self.streamed,
            messages=self.refs,
            tools=self.tools,
            params=self.params,
            response=self.response,
            finish_reason=answer.finish_reason,
            prompt_tokens=self.prompt,
            completion_tokens=None if answer.completion is None else tuple(answer.completion),
            logprobs=None if answer.logprobs is None else tuple(answer.logprobs),
            versions=self.versions,
            usage=self.usage,
            cost_usd=self.cost_usd,
            timings=CallTimings(
                started_at=self.started_at,
                waited_s=self.waited_s,
                first_token_s=self.first_token_s,
                total_s=self.total_s,
            ),
            retries=tuple(self.retries),
            error=self.error,
        )


_EVERY = Usage(input=1, cache_read=1, cache_write=1, output=1)
_UNBILLED = frozenset({"ModelRejected", "ModelRateLimited"})
"""Errors of calls that never reached the model."""
