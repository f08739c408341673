"""Models with one fault each."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import AsyncIterator

import pytest

from orchard_core import (
    SessionContext,
    UpstreamReply,
    UpstreamRequest,
    Usage,
)
from orchard_core.testing import (
    FakeModel,
    FakeReply,
    FakeUpstream,
    ModelSuite,
)


class _Modelled(ModelSuite):
    upstream_type: type[FakeUpstream] = FakeUpstream

    @pytest.fixture
    def model(self) -> FakeModel:
        upstream_type = self.upstream_type

        class Model(FakeModel):
            def upstream(self, context: SessionContext) -> FakeUpstream:
                return upstream_type(super().upstream(context)._next)

        return Model(["Well, hello there."])


class TestAStreamThatLosesText(_Modelled):
    caught_by = "test_a_stream_says_what_the_whole_answer_says"

    class upstream_type(FakeUpstream):  # noqa: N801
        async def stream(self, request: UpstreamRequest) -> AsyncIterator[bytes]:
            first = True
            async for payload in super().stream(request):
                if first or b"content" not in payload:
                    yield payload
                first = False


class TestAStreamWithItsFraming(_Modelled):
    caught_by = "test_a_stream_is_bare_payloads"

    class upstream_type(FakeUpstream):  # noqa: N801
        async def stream(self, request: UpstreamRequest) -> AsyncIterator[bytes]:
            async for payload in super().stream(request):
                yield b"data: " + payload + b"\n\n"


class TestCachedTokensCountedTwice(_Modelled):
    caught_by = "test_usage_never_overlaps"

    class upstream_type(FakeUpstream):  # noqa: N801
        async def complete(self, request: UpstreamRequest) -> UpstreamReply:
            reply = await super().complete(request)
            used = reply.usage or Usage()
            return dataclasses.replace(reply, usage=used.model_copy(update={"cache_read": used.input}))


class TestLogProbabilitiesMissing(_Modelled):
    caught_by = "test_token_ids_fit_their_log_probabilities"

    class upstream_type(FakeUpstream):  # noqa: N801
        async def complete(self, request: UpstreamRequest) -> UpstreamReply:
            reply = await super().complete(request)
            return dataclasses.replace(reply, logprobs=(reply.logprobs or [0.0])[1:])


class TestABrokenRequestThatCrashes(_Modelled):
    caught_by = "test_a_broken_request_is_a_typed_error"

    class upstream_type(FakeUpstream):  # noqa: N801
        async def complete(self, request: UpstreamRequest) -> UpstreamReply:
            json.loads(request.body)
            return await super().complete(request)


class TestAScriptSharedBySessions(ModelSuite):
    caught_by = "test_sessions_do_not_share_a_script"

    @pytest.fixture
    def model(self) -> FakeModel:
        left = iter(["one", "two", "three"])
        return FakeModel(otherwise=lambda request: FakeReply(text=next(left)))
