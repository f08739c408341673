"""The contract suite of upstreams: what every one must do, and what one that speaks HTTP must do too."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from orchard_core.errors import ModelError
from orchard_core.gateway.contract import Upstream, UpstreamReply, UpstreamRequest
from orchard_core.testing.suites.model.assemble import assemble, said_by
from orchard_core.types.model import Dialect, UpstreamMode, Usage

MakeUpstream = Callable[[], Upstream]

BASH: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "bash",
        "description": "Runs a shell command.",
        "parameters": {
            "type": "object",
            "properties": {"command": {"type": "string"}},
            "required": ["command"],
        },
    },
}
"""The tool the suite offers."""


def chat_request(
    *, index: int = 0, timeout_s: float = 30.0, model: str = "m", **fields: Any
) -> UpstreamRequest:
    """A chat request with a tool; `fields` go into its body."""
    body: dict[str, Any] = {
        "model": model,
        "messages": [{"role": "user", "content": "Say something."}],
        "tools": [BASH],
        **fields,
    }
    return UpstreamRequest(
        dialect=Dialect.CHAT, body=json.dumps(body).encode(), index=index, timeout_s=timeout_s
    )


@pytest.mark.asyncio
class UpstreamSuite:
    """Subclasses give the fixture `make_upstream`: a function that makes an upstream which answers its first
    request, and would give the same answer if it were made again."""

    model_name: ClassVar[str] = "m"
    """The model that requests name."""
    deterministic: ClassVar[bool] = True
    """Two upstreams made alike give the same answer."""

    def ask(self, **fields: Any) -> UpstreamRequest:
        """A request as the gateway would hand it on."""
        return chat_request(model=self.model_name, **fields)

    async def test_it_is_what_the_contract_names(self, make_upstream: MakeUpstream) -> None:
        """The gateway asks for mode and dialects before it sends: tell both."""
        upstream = make_upstream()
        assert isinstance(upstream, Upstream)
        assert isinstance(upstream.mode, UpstreamMode)
        assert upstream.dialects
        assert all(isinstance(dialect, Dialect) for dialect in upstream.dialects)
        await upstream.close()

    async def test_an_answer_is_a_chat_completion(self, make_upstream: MakeUpstream) -> None:
        """Harnesses read choices, message and finish reason: give all three."""
        upstream = make_upstream()
        reply = await upstream.complete(self.ask())
        choice = json.loads(reply.body)["choices"][0]
        assert choice["message"]["role"] == "assistant"
        assert choice["finish_reason"]
        text, calls = said_by(reply.body)
        assert text or calls
        await upstream.close()

    async def test_a_stream_says_what_the_whole_answer_says(self, make_upstream: MakeUpstream) -> None:
        """A harness that streams must get the same text, calls and finish reason, piece by piece."""
        whole, streamed = make_upstream(), make_upstream()
        reply = await whole.complete(self.ask())
        seen = await assemble(streamed.stream(self.ask(stream=True, stream_options={"include_usage": True})))
        assert seen.chunks > 0
        assert seen.finish_reason
        if self.deterministic:
            assert seen.said == said_by(reply.body)
            assert seen.finish_reason == json.loads(reply.body)["choices"][0]["finish_reason"]
        await asyncio.gather(whole.close(), streamed.close())

    async def test_a_stream_is_bare_payloads(self, make_upstream: MakeUpstream) -> None:
        """The gateway writes the `data:` lines: give JSON alone, and leave `[DONE]` out."""
        upstream = make_upstream()
        async for payload in upstream.stream(self.ask(stream=True)):
            assert isinstance(payload, bytes)
            assert not payload.startswith(b"data:")
            assert isinstance(json.loads(payload), dict)
        await upstream.close()

    async def test_token_ids_fit_their_log_probabilities(self, make_upstream: MakeUpstream) -> None:
        """Training multiplies ids by log-probabilities: as many of each, none above 0, all spans inside."""
        upstream = make_upstream()
        reply = await upstream.complete(self.ask())
        check_tokens(reply, upstream.mode)
        await upstream.close()

    async def test_usage_never_overlaps(self, make_upstream: MakeUpstream) -> None:
        """Cached tokens counted as input too are paid twice: the four counts are disjoint."""
        upstream = make_upstream()
        reply = await upstream.complete(self.ask())
        told = json.loads(reply.body).get("usage")
        if reply.usage is not None and told:
            seen = reply.usage
            assert seen.input + seen.cache_read + seen.cache_write == told["prompt_tokens"]
            assert seen.output == told["completion_tokens"]
        for count in (reply.usage or Usage()).model_dump().values():
            assert count >= 0
        await upstream.close()

    async def test_a_broken_request_is_a_typed_error(self, make_upstream: MakeUpstream) -> None:
        """What cannot be answered raises a ModelError: any other class ends the call unexplained."""
        upstream = make_upstream()
        broken = UpstreamRequest(dialect=Dialect.CHAT, body=b"{not json", index=0, timeout_s=10)
        with pytest.raises(ModelError):
            await upstream.complete(broken)
        with pytest.raises(ModelError):
            await assemble(upstream.stream(broken))
        await upstream.close()

    async def test_closing_may_be_repeated(self, make_upstream: MakeUpstream) -> None:
        """Error paths close twice: the second time does nothing."""
        upstream = make_upstream()
        await upstream.close()
        await upstream.close()

    async def test_a_stream_may_be_left_early(self, make_upstream: MakeUpstream) -> None:
        """Harnesses hang up: leaving the iterator must end the request and free its connection."""
        upstream = make_upstream()
        payloads = upstream.stream(self.ask(stream=True))
        await anext(payloads)
        await payloads.aclose()  # type: ignore[attr-defined]
        assert [piece async for piece in payloads] == []
        reply = await upstream.complete(self.ask())
        assert json.loads(reply.body)["choices"]
        async with asyncio.timeout(20):
            await upstream.close()


def check_tokens(reply: UpstreamReply, mode: UpstreamMode) -> None:
    """Ids, log-probabilities and version spans of one reply agree with each other and with the mode."""
    if mode is UpstreamMode.TEXT:
        assert reply.completion_tokens is None
        return
    if mode is UpstreamMode.TOKEN_IN:
        assert reply.completion_tokens is not None
    if reply.completion_tokens is None:
        return
    count = len(reply.completion_tokens)
    assert all(isinstance(token, int) and token >= 0 for token in reply.completion_tokens)
    if reply.logprobs is not None:
        assert len(reply.logprobs) == count
        assert all(value <= 0 for value in reply.logprobs)
    for span in reply.versions:
        assert 0 <= span.start <= span.stop <= count
