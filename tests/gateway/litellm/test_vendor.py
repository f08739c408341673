"""A vendor of another protocol behind LiteLLM, seen through a real gateway."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from orchard_core import ModelCall, Price, Usage
from orchard_core.gateway.litellm.config import LiteLLMConfig
from orchard_core.gateway.litellm.model import LiteLLMModel
from orchard_core.gateway.session import Session

from ..client import Client
from ..conftest import Open
from . import needs_litellm
from .vendor import CONTENT, Json, Vendor, thoughtful_events

pytestmark = needs_litellm

KEY = "sk-ant-secret-0123456789"
BASH = {"type": "function", "function": {"name": "bash", "parameters": {"type": "object", "properties": {}}}}
CALL = {"name": "bash", "arguments": '{"command": "ls"}'}
HI = [{"role": "user", "content": "hi"}]


@pytest.fixture
async def vendor() -> AsyncIterator[Vendor]:
    made = Vendor()
    await made.start()
    yield made
    await made.stop()


def model(vendor: Vendor, **options: Any) -> LiteLLMModel:
    """Claude at that server."""
    settings = {"model": "anthropic/claude-sonnet-4-5", "base_url": vendor.url, "api_key": KEY, **options}
    return LiteLLMModel(LiteLLMConfig.model_validate(settings))


@pytest.fixture
async def opened(vendor: Vendor, open_session: Open) -> tuple[Session, Client]:
    return await open_session(model(vendor))


async def last_call(session: Session) -> ModelCall:
    """What was recorded of the only call."""
    [call] = (await session.close()).calls
    return call


async def test_a_chat_request_gets_a_chat_answer_and_its_price(
    opened: tuple[Session, Client], vendor: Vendor
) -> None:
    session, client = opened
    answer = await client.chat(HI, tools=[BASH], max_tokens=50)
    assert answer.message["content"] == "See:"
    assert answer.message["tool_calls"][0]["function"] == CALL
    headers, body = vendor.asked[0]
    assert headers["x-api-key"] == KEY
    assert (body["model"], body["max_tokens"]) == ("claude-sonnet-4-5", 50)
    call = await last_call(session)
    assert call.usage == Usage(input=10, cache_read=70, cache_write=20, output=5)
    price = Price(input=3.0, output=15.0, cache_read=0.3, cache_write=3.75)
    assert call.cost_usd == pytest.approx(price.cost(call.usage))
    assert call.finish_reason == "tool_calls"


async def test_a_stream_is_recorded_like_a_whole_answer(opened: tuple[Session, Client]) -> None:
    session, client = opened
    answer = await client.chat(HI, tools=[BASH], stream=True)
    assert answer.events[-1] == "[DONE]"
    call = await last_call(session)
    assert call.usage == Usage(input=10, cache_read=70, cache_write=20, output=5)
    assert (call.finish_reason, call.error) == ("tool_calls", None)
    said = session.conversation.messages[call.response or ""][1]
    assert '"See:"' in said
    assert '{\\"command\\": \\"ls\\"}' in said


async def test_every_dialect_reaches_every_vendor(opened: tuple[Session, Client]) -> None:
    session, client = opened
    body = {"model": session.endpoint.model, "input": "hi", "tools": [{"type": "function", "name": "bash"}]}
    answer = await client.post(body, path="/responses")
    assert [item["type"] for item in answer.json["output"]] == ["message", "function_call"]
    assert answer.json["usage"]["input_tokens_details"]["cached_tokens"] == 70


async def test_signed_reasoning_goes_back_as_it_was_signed(
    opened: tuple[Session, Client], vendor: Vendor
) -> None:
    session, client = opened
    vendor.streamed = thoughtful_events()
    tools = [{"type": "function", "name": "bash", "parameters": {"type": "object", "properties": {}}}]
    ask = {"model": session.endpoint.model, "tools": tools, "reasoning": {"effort": "low"}}
    first = await client.post({**ask, "input": "hi", "stream": True}, path="/responses")
    output = first.events[-1]["response"]["output"]
    result = {"type": "function_call_output", "call_id": "toolu_1", "output": "x"}
    await client.post(
        {**ask, "input": [{"role": "user", "content": "hi"}, *output, result]}, path="/responses"
    )
    signed = {"type": "thinking", "thinking": "I should look.", "signature": "c2lnbmVk"}
    assert vendor.asked[1][1]["messages"][1]["content"] == [signed, *CONTENT]
    trajectory = await session.close()
    before, after = trajectory.calls
    given, back = (trajectory.messages[key or ""].raw for key in (before.response, after.messages.added[0]))
    assert json.loads(given) == json.loads(back)


async def test_a_stream_that_breaks_off_is_no_whole_answer(
    opened: tuple[Session, Client], vendor: Vendor
) -> None:
    session, client = opened
    vendor.streamed = vendor.streamed[:5]
    await client.chat(HI, stream=True)
    call = await last_call(session)
    assert call.error is not None
    assert call.finish_reason is None


@pytest.mark.parametrize(
    ("status", "headers", "kind"),
    [
        (400, {}, "ModelRejected"),
        (401, {}, "ModelRejected"),
        (404, {}, "ModelRejected"),
        (429, {"retry-after": "400"}, "ModelRateLimited"),
        (500, {}, "ModelUnavailable"),
        (529, {}, "ModelUnavailable"),
    ],
)
async def test_an_error_of_the_vendor_has_its_class(
    opened: tuple[Session, Client], vendor: Vendor, status: int, headers: dict[str, str], kind: str
) -> None:
    session, client = opened
    words: Json = {"type": "error", "error": {"type": "some_error", "message": f"no, {KEY}"}}
    vendor.failure = (status, words, headers)
    answer = await client.chat(HI)
    assert answer.status >= 400
    call = await last_call(session)
    assert call.error is not None
    assert call.error.kind == kind
    assert KEY not in answer.raw.decode()
    assert KEY not in call.error.message
    assert call.cost_usd in (0.0, None)


async def test_a_parameter_that_the_vendor_lacks_is_refused_or_left_out(
    vendor: Vendor, open_session: Open
) -> None:
    _, client = await open_session(model(vendor))
    refused = await client.chat(HI, logit_bias={"1": 2})
    assert refused.status == 400
    assert "logit_bias" in refused.error["message"]
    _, client = await open_session(model(vendor, drop_unsupported=True))
    assert (await client.chat(HI, logit_bias={"1": 2})).status == 200


HOSTILE: list[Json] = [
    {"api_base": "http://127.0.0.1:1/"},
    {"base_url": "http://127.0.0.1:1/"},
    {"api_key": "sk-other"},
    {"mock_response": "all tests passed"},
    {"custom_llm_provider": "openai"},
    {"model_list": [{"model_name": "m"}]},
    {"extra_headers": {"x-api-key": "sk-other"}},
    {"fallbacks": ["openai/gpt-5"]},
    {"timeout": 0.000001},
    {"num_retries": 9},
    {"extra_body": {"model": "claude-other"}},
]


@pytest.mark.parametrize("fields", HOSTILE, ids=lambda fields: next(iter(fields)))
async def test_a_harness_cannot_reach_litellms_own_settings(
    opened: tuple[Session, Client], vendor: Vendor, fields: Json
) -> None:
    _, client = opened
    answer = await client.chat(HI, **fields)
    assert answer.message["content"] == "See:"
    [(headers, body)] = vendor.asked
    assert headers["x-api-key"] == KEY
    assert body["model"] == "claude-sonnet-4-5"


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url", "image_url": {"url": "http://169.254.169.254/latest"}},
        {"type": "image_url", "image_url": "https://example.com/a.png"},
        {"type": "file", "file": {"file_id": "gs://bucket/a.pdf"}},
        {"type": "video_url", "video_url": {"url": "FILE:///etc/passwd"}},
        {"type": "image_url", "image_url": " http://169.254.169.254/latest"},
        {"type": "image_url", "image_url": ["http://169.254.169.254/latest"]},
        {"type": "image_url", "image_url": {"url": "data:image/png;http://169.254.169.254/latest"}},
        {"type": "tool_result", "content": [{"type": "image", "source": {"url": "s3://bucket/a"}}]},
    ],
)
async def test_nothing_is_fetched_for_a_harness(
    opened: tuple[Session, Client], vendor: Vendor, part: Json
) -> None:
    _, client = opened
    answer = await client.chat([{"role": "user", "content": [part]}])
    assert answer.status == 400
    assert "send the data itself" in answer.error["message"]
    assert vendor.asked == []


async def test_an_image_travels_as_data(opened: tuple[Session, Client], vendor: Vendor) -> None:
    _, client = opened
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
    await client.chat([{"role": "user", "content": [{"type": "text", "text": "http://x"}, image]}])
    source = vendor.asked[0][1]["messages"][0]["content"][1]["source"]
    assert (source["media_type"], source["data"]) == ("image/png", "aGk=")
