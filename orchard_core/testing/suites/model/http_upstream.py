"""The contract suite of upstreams that speak to a chat completions server over HTTP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable

import pytest
import pytest_asyncio

from orchard_core.errors import (
    ModelError,
    ModelRateLimited,
    ModelRejected,
    ModelReplyMalformed,
    ModelTimeout,
    ModelUnavailable,
)
from orchard_core.gateway.contract import Upstream
from orchard_core.testing.suites.model.assemble import assemble
from orchard_core.testing.suites.model.server import Behaviour, ModelServer, chunks, completion, model_server
from orchard_core.testing.suites.model.upstream import MakeUpstream, UpstreamSuite

UpstreamFor = Callable[[str, str], Upstream]
KEY = "sk-vendor-secret-0123456789"


class HttpUpstreamSuite(UpstreamSuite):
    """Subclasses give the fixture `upstream_for`: a function of base URL (ending in /v1) and API key."""

    @pytest_asyncio.fixture
    async def server(self) -> AsyncIterator[ModelServer]:
        """A server that answers as it is told."""
        async with model_server() as server:
            yield server

    @pytest.fixture
    def make_upstream(self, server: ModelServer, upstream_for: UpstreamFor) -> MakeUpstream:
        """See UpstreamSuite."""
        return lambda: upstream_for(server.url, KEY)

    @pytest_asyncio.fixture
    async def upstream(self, make_upstream: MakeUpstream) -> AsyncIterator[Upstream]:
        """One upstream on the server."""
        upstream = make_upstream()
        yield upstream
        await upstream.close()

    async def test_requests_go_out_as_they_came_in(self, upstream: Upstream, server: ModelServer) -> None:
        """Servers take more fields than we know: pass unknown ones on, with the key in its header."""
        await upstream.complete(self.ask(temperature=0.3, top_k=7, vendor={"a": [1, None]}))
        seen = server.received[0]
        assert seen.path == "/v1/chat/completions"
        assert seen.headers["authorization"] == f"Bearer {KEY}"
        assert (seen.body["temperature"], seen.body["top_k"], seen.body["vendor"]) == (
            0.3,
            7,
            {"a": [1, None]},
        )
        assert seen.body["messages"] == [{"role": "user", "content": "Say something."}]

    @pytest.mark.parametrize("status", [500, 502, 503, 504, 529])
    async def test_a_failing_server_is_unavailable(
        self, upstream: Upstream, server: ModelServer, status: int
    ) -> None:
        """5xx may pass: raise ModelUnavailable, which the gateway repeats; do not repeat it yourself."""
        server.behaviours = [Behaviour(status=status, body=b"oops")]
        with pytest.raises(ModelUnavailable):
            await upstream.complete(self.ask())
        assert len(server.received) == 1

    async def test_a_full_server_says_how_long_to_wait(self, upstream: Upstream, server: ModelServer) -> None:
        """429 with Retry-After: raise ModelRateLimited with `retry_after_s`, which the gateway honours."""
        server.behaviours = [Behaviour(status=429, body=b"{}", headers={"Retry-After": "7"})]
        with pytest.raises(ModelRateLimited) as raised:
            await upstream.complete(self.ask())
        assert getattr(raised.value, "retry_after_s", None) == 7
        assert len(server.received) == 1

    @pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422])
    async def test_a_refusal_keeps_status_and_words(
        self, upstream: Upstream, server: ModelServer, status: int
    ) -> None:
        """4xx will not pass: raise ModelRejected with the server's own words, which say what is wrong."""
        server.behaviours = [Behaviour(status=status, body=b'{"error":{"message":"context too long"}}')]
        with pytest.raises(ModelRejected) as raised:
            await upstream.complete(self.ask())
        assert raised.value.status == status
        assert "context too long" in raised.value.body

    async def test_errors_before_a_stream_are_typed_alike(
        self, upstream: Upstream, server: ModelServer
    ) -> None:
        """A stream that never begins is an error, not an empty answer."""
        for status, kind in ((503, ModelUnavailable), (429, ModelRateLimited), (400, ModelRejected)):
            server.behaviours = [Behaviour(status=status, body=b"{}")]
            with pytest.raises(kind):
                await assemble(upstream.stream(self.ask(stream=True)))

    async def test_nobody_there_is_unavailable(self, upstream_for: UpstreamFor) -> None:
        """A refused connection is a ModelUnavailable that names the address."""
        async with model_server() as gone:
            url = gone.url
        upstream = upstream_for(url, KEY)
        with pytest.raises(ModelUnavailable) as raised:
            await upstream.complete(self.ask())
        assert "127.0.0.1" in str(raised.value)
        await upstream.close()

    async def test_silence_ends_at_the_limit(self, upstream: Upstream, server: ModelServer) -> None:
        """An unanswered request must not hang the run: raise ModelTimeout with the limit that fired."""
        server.behaviours = [Behaviour(hang=True)]
        async with asyncio.timeout(20):
            with pytest.raises(ModelTimeout) as raised:
                await upstream.complete(self.ask(timeout_s=0.3))
            assert raised.value.limit_s == 0.3
            with pytest.raises(ModelTimeout):
                await assemble(upstream.stream(self.ask(timeout_s=0.3, stream=True)))

    @pytest.mark.parametrize("body", [b"not json", b"", b"[]", b"null", b'{"choices": 3}', b"\xff\xfe"])
    async def test_nonsense_is_malformed(self, upstream: Upstream, server: ModelServer, body: bytes) -> None:
        """A proxy's HTML page with status 200 is no answer: raise ModelReplyMalformed, or pass it on."""
        server.behaviours = [Behaviour(body=body)]
        try:
            reply = await upstream.complete(self.ask())
        except ModelReplyMalformed:
            return
        assert reply.body == body

    async def test_an_answer_that_is_cut_is_an_error(self, upstream: Upstream, server: ModelServer) -> None:
        """Half an answer taken for a whole one becomes training data: raise."""
        server.behaviours = [Behaviour(cut=True)]
        with pytest.raises(ModelError):
            await upstream.complete(self.ask())

    async def test_a_stream_that_is_cut_does_not_look_whole(
        self, upstream: Upstream, server: ModelServer
    ) -> None:
        """A stream that broke off must not gain a finish reason: raise, or let the gateway see it."""
        server.behaviours = [Behaviour(events=chunks()[:1], cut=True)]
        try:
            seen = await assemble(upstream.stream(self.ask(stream=True)))
        except ModelError:
            return
        assert seen.finish_reason is None

    async def test_a_stream_that_is_cut_within_an_event_is_an_error(
        self, upstream: Upstream, server: ModelServer
    ) -> None:
        """Half an event is no event: raise a ModelError instead of leaving it out."""
        server.behaviours = [Behaviour(events=[chunks()[0], b'{"choices": [{"delta'], cut=True)]
        with pytest.raises((ModelError, ValueError)):
            await assemble(upstream.stream(self.ask(stream=True)))

    async def test_a_lone_surrogate_survives(self, upstream: Upstream, server: ModelServer) -> None:
        """Models write broken emoji: such an answer round-trips, it does not kill the run."""
        message = {"role": "assistant", "content": "\ud83d broken"}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        server.behaviours = [Behaviour(body=completion(choices=[choice]))]
        reply = await upstream.complete(self.ask())
        assert json.loads(reply.body)["choices"][0]["message"]["content"] == "\ud83d broken"

    async def test_cached_tokens_are_counted_once(self, upstream: Upstream, server: ModelServer) -> None:
        """OpenAI counts cached tokens within the prompt: take them out of the input."""
        reply = await upstream.complete(self.ask())
        if reply.usage is not None:
            assert (reply.usage.input, reply.usage.cache_read, reply.usage.output) == (20, 80, 7)

    async def test_the_key_is_in_no_error(self, upstream: Upstream, server: ModelServer) -> None:
        """Errors are logged and stored: no message may carry the vendor's key."""
        for status in (401, 429, 500):
            server.behaviours = [Behaviour(status=status, body=f'{{"error": "bad key {KEY}"}}'.encode())]
            with pytest.raises(ModelError) as raised:
                await upstream.complete(self.ask())
            assert KEY not in str(raised.value)

    async def test_leaving_hangs_up(self, upstream: Upstream, server: ModelServer) -> None:
        """A cancelled call must free the server: close the connection."""
        server.behaviours = [Behaviour(hang=True)]
        call = asyncio.create_task(upstream.complete(self.ask()))
        async with asyncio.timeout(20):
            while not server.received:
                await asyncio.sleep(0.01)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            while not server.hung_up:
                await asyncio.sleep(0.01)
