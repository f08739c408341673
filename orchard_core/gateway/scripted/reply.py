"""What a scripted model answers, and how it looks on the wire."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import ConfigDict

from orchard_core.gateway.contract import UpstreamReply
from orchard_core.gateway.scripted.conversation import Conversation
from orchard_core.types.model import Usage

BYTES_PER_TOKEN = 4
"""Usage is an estimate: one token for every four bytes of JSON begun, of the request and of the answer."""

_PIECE = 24
"""Characters in one piece of a streamed text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyCall:
    """One tool call of an answer."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    name: str
    """The tool to call."""
    arguments: Mapping[str, Any] | str
    """The arguments object, or their exact text, which need not be JSON."""
    id: str = ""
    """The call's id; empty: made from the call's place in the session."""

    @property
    def arguments_text(self) -> str:
        """The arguments as they travel."""
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One whole answer."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    text: str = ""
    """What the model says."""
    calls: tuple[ReplyCall, ...] = ()
    """What it calls, in order."""
    reasoning: str = ""
    """Sent as `reasoning_content` when not empty."""
    finish_reason: str = ""
    """Empty: `tool_calls` with calls, else `stop`."""
    usage: Usage | None = None
    """Token counts; None: estimated from sizes."""
    prompt_tokens: tuple[int, ...] | None = None
    """Ids of the prompt, as a server that tells them would."""
    completion_tokens: tuple[int, ...] | None = None
    """Sampled ids, likewise."""
    logprobs: tuple[float, ...] | None = None
    """Natural log-probabilities of the sampled ids, likewise."""

    def message(self, index: int) -> dict[str, Any]:
        """The assistant message, given the call's index in its session."""
        message: dict[str, Any] = {"role": "assistant", "content": self.text or None}
        if self.reasoning:
            message["reasoning_content"] = self.reasoning
        if self.calls:
            message["tool_calls"] = [
                {
                    "id": call.id or f"call_{index}_{place}",
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments_text},
                }
                for place, call in enumerate(self.calls)
            ]
        elif not self.text:
            message["content"] = ""
        return message


def as_upstream_reply(reply: Reply, conversation: Conversation, model: str) -> UpstreamReply:
    """The answer as a chat completion."""
    message = reply.message(conversation.index)
    usage = reply.usage or _estimate(conversation, message)
    body = {
        **_envelope(conversation, model, "chat.completion"),
        "choices": [{"index": 0, "message": message, "finish_reason": _finish(reply)}],
        "usage": _wire_usage(usage),
    }
    return UpstreamReply(
        body=json.dumps(body).encode(),
        prompt_tokens=reply.prompt_tokens,
        completion_tokens=reply.completion_tokens,
        logprobs=reply.logprobs,
        usage=usage,
    )


def as_chunks(reply: Reply, conversation: Conversation, model: str) -> Iterator[bytes]:
    """The same answer as the payloads of server-sent events."""
    envelope = _envelope(conversation, model, "chat.completion.chunk")
    message = reply.message(conversation.index)
    deltas = [*_deltas(message), {}]
    told = _told(reply, len(deltas))
    for place, (delta, tokens) in enumerate(zip(deltas, told, strict=True)):
        head = envelope
        if place == 0 and reply.prompt_tokens is not None:
            head = {**envelope, "prompt_token_ids": reply.prompt_tokens}
        yield _chunk(head, {"delta": delta, **tokens}, None if delta else _finish(reply))
    if conversation.wants_usage:
        usage = reply.usage or _estimate(conversation, message)
        yield json.dumps({**envelope, "choices": [], "usage": _wire_usage(usage)}).encode()


def _deltas(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    yield {"role": "assistant", "content": None if message["content"] is None else ""}
    for piece in _pieces(message.get("reasoning_content", "")):
        yield {"reasoning_content": piece}
    for piece in _pieces(message["content"] or ""):
        yield {"content": piece}
    for place, call in enumerate(message.get("tool_calls", ())):
        function = call["function"]
        yield {"tool_calls": [{"index": place, **call, "function": {**function, "arguments": ""}}]}
        for piece in _pieces(function["arguments"]):
            yield {"tool_calls": [{"index": place, "function": {"arguments": piece}}]}


def _told(reply: Reply, pieces: int) -> Iterator[dict[str, Any]]:
    """What each of so many pieces tells of the sampled ids, as vLLM does; they are spread evenly."""
    sampled, logprobs = reply.completion_tokens, reply.logprobs
    for place in range(pieces):
        told: dict[str, Any] = {}
        if sampled is not None:
            part = slice(place * len(sampled) // pieces, (place + 1) * len(sampled) // pieces)
            told["token_ids"] = sampled[part]
            if logprobs is not None:
                told["logprobs"] = {"content": [{"logprob": each} for each in logprobs[part]]}
        yield told


def _pieces(text: str) -> Iterator[str]:
    return (text[at : at + _PIECE] for at in range(0, len(text), _PIECE))


def _envelope(conversation: Conversation, model: str, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{conversation.index}", "object": kind, "created": 0, "model": model}


def _chunk(envelope: Mapping[str, Any], choice: Mapping[str, Any], finish: str | None) -> bytes:
    choice = {"index": 0, **choice, "finish_reason": finish}
    return json.dumps({**envelope, "choices": [choice]}).encode()


def _finish(reply: Reply) -> str:
    return reply.finish_reason or ("tool_calls" if reply.calls else "stop")


def _estimate(conversation: Conversation, message: Mapping[str, Any]) -> Usage:
    written = len(json.dumps(message))
    return Usage(
        input=math.ceil(conversation.size / BYTES_PER_TOKEN), output=math.ceil(written / BYTES_PER_TOKEN)
    )


def _wire_usage(usage: Usage) -> dict[str, Any]:
    prompt = usage.input + usage.cache_read + usage.cache_write
    return {
        "prompt_tokens": prompt,
        "completion_tokens": usage.output,
        "total_tokens": prompt + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read},
    }
