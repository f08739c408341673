"""A small deterministic engine that takes and gives token ids, with its renderer: bytes and three marks.

It stands for a model family in tests of everything that works on tokens.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from orchard_core.errors import ModelRejected
from orchard_core.gateway.contract import (
    Renderer,
    SessionContext,
    TokenUpstream,
    UpstreamReply,
    UpstreamRequest,
)
from orchard_core.types.model import Dialect, Price, UpstreamMode, VersionSpan

START, END, CALL = 256, 257, 258
"""Before a role; after a message, which ends an answer; before each call of a message."""

NextIds = Callable[[Sequence[int], int], Sequence[int]]
"""Ids sampled after a prompt, given the call's index within its session."""


class ByteRenderer:
    """Honours `orchard_core.Renderer`: START role newline content (CALL json)* END, and so on."""

    @property
    def stop_ids(self) -> frozenset[int]:
        """END alone."""
        return frozenset({END})

    def render(self, body: bytes) -> array[int]:
        """Ids of a whole request."""
        return self._turns(json.loads(body)["messages"])

    def render_suffix(self, body: bytes, done: int) -> array[int]:
        """The end of message `done` - 1, and all that follows."""
        return array("q", [END]) + self._turns(json.loads(body)["messages"][done:])

    def spell(self, message: Mapping[str, Any]) -> array[int]:
        """Ids of one message's content and calls, its end left out."""
        ids = array("q", list(_text(message.get("content")).encode("utf-8", "surrogatepass")))
        for call in message.get("tool_calls") or ():
            function = call["function"]
            parts = [call.get("id", ""), function["name"], function["arguments"]]
            ids.append(CALL)
            ids.extend(json.dumps(parts).encode())
        return ids

    def parse(self, completion: Sequence[int]) -> bytes:
        """The message that ids spell; bytes that are not UTF-8 become U+FFFD."""
        ids = [token for token in completion if token not in (START, END)]
        marks = [place for place, token in enumerate(ids) if token == CALL] + [len(ids)]
        message: dict[str, Any] = {"role": "assistant", "content": _decode(ids[: marks[0]]) or None}
        calls = [_call(ids[one + 1 : other]) for one, other in pairwise(marks)]
        if calls:
            message["tool_calls"] = calls
        return json.dumps(message).encode()

    def _turns(self, messages: Sequence[Mapping[str, Any]]) -> array[int]:
        ids = array("q")
        for message in messages:
            ids.extend([START, *f"{message['role']}\n".encode()])
            ids += self.spell(message)
            ids.append(END)
        ids.extend([START, *b"assistant\n"])
        return ids


def _text(content: object) -> str:
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return "" if content is None else str(content)


def _decode(ids: Sequence[int]) -> str:
    return bytes(ids).decode("utf-8", "replace")


def _call(ids: Sequence[int]) -> dict[str, Any]:
    try:
        name, tool, arguments = json.loads(_decode(ids))
    except ValueError:
        name, tool, arguments = "", "", _decode(ids)
    function = {"name": str(tool), "arguments": str(arguments)}
    return {"id": str(name), "type": "function", "function": function}


class ScriptedTokenUpstream:
    """Honours `orchard_core.gateway.contract.TokenUpstream`. It samples what its script says."""

    def __init__(self, sample: NextIds, version: str) -> None:
        self._sample = sample
        self._version = version
        self.prompts: list[Sequence[int]] = []
        """Every prompt it was given."""

    @property
    def mode(self) -> UpstreamMode:
        """Token-in."""
        return UpstreamMode.TOKEN_IN

    @property
    def dialects(self) -> frozenset[Dialect]:
        """Chat, by way of the renderer."""
        return frozenset({Dialect.CHAT})

    @property
    def renderer(self) -> Renderer:
        """Bytes and marks."""
        return ByteRenderer()

    async def complete(self, request: UpstreamRequest) -> UpstreamReply:
        """Sampled ids; the gateway makes the body. Raises ModelRejected without a prompt."""
        prompt = request.prompt_tokens
        if prompt is None:
            raise ModelRejected("a token-in engine needs the prompt's ids", status=400)
        self.prompts.append(prompt)
        sampled = self._sample(prompt, request.index)
        return UpstreamReply(
            body=b"",
            completion_tokens=sampled,
            logprobs=[logprob(token, place) for place, token in enumerate(sampled)],
            versions=(VersionSpan(start=0, stop=len(sampled), version=self._version),),
        )

    def stream(self, request: UpstreamRequest) -> AsyncIterator[bytes]:
        """Never used: the gateway cuts whole answers of token-in engines. Raises ModelRejected."""
        raise ModelRejected("a token-in engine answers whole", status=400)

    async def close(self) -> None:
        """Nothing is held."""


def logprob(token: int, place: int) -> float:
    """The log-probability the engine claims for an id at a place of an answer: any, but always the same."""
    return -((token * 31 + place * 7) % 97 + 1) / 100


class ScriptedTokenModel:
    """Honours `orchard_core.Model`. Each session hears `replies` (messages as chat has them) from the first
    on; the last is repeated."""

    def __init__(
        self, replies: Sequence[Mapping[str, Any]], *, name: str = "scripted-tokens", version: str = "0"
    ) -> None:
        self._answers = [[*ByteRenderer().spell(reply), END] for reply in replies]
        self._name = name
        self._version = version
        self.upstreams: list[ScriptedTokenUpstream] = []
        """One for each session, in order."""

    @property
    def name(self) -> str:
        """Name that is stored."""
        return self._name

    @property
    def price(self) -> Price | None:
        """Free."""
        return Price(input=0.0, output=0.0)

    @property
    def concurrency(self) -> int | None:
        """No bound."""
        return None

    def upstream(self, context: SessionContext) -> TokenUpstream:
        """One that begins at the first reply."""
        made = ScriptedTokenUpstream(self._next, self._version)
        self.upstreams.append(made)
        return made

    def _next(self, prompt: Sequence[int], index: int) -> Sequence[int]:
        return self._answers[min(index, len(self._answers) - 1)]

    async def close(self) -> None:
        """Nothing is held."""
