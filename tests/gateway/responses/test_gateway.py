"""The responses API before a chat model, through a real gateway and with OpenAI's own client."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from orchard_core import Dialect, Limits
from orchard_core.gateway.session import Session

from ..client import Client
from ..conftest import Open
from ..model_server import ModelServer, chunk, fails, says, streams

openai = pytest.importorskip("openai", reason="needs OpenAI's client: pip install openai")
adapter = pytest.importorskip("pydantic").TypeAdapter

RUN = {"type": "function", "name": "run", "parameters": {"type": "object"}}
PATCH = {"type": "custom", "name": "patch"}
CALL = {"id": "c1", "type": "function", "function": {"name": "run", "arguments": '{"x":  1}'}}
USAGE = {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}


@pytest.fixture
async def connected(open_session: Open) -> AsyncIterator[Callable[..., Any]]:
    """A session and OpenAI's client on it."""
    made: list[Any] = []

    async def connect(**options: Any) -> tuple[Session, Any, Client]:
        session, client = await open_session(**options)
        sdk = openai.AsyncOpenAI(
            base_url=session.endpoint.base_url, api_key=session.endpoint.api_key, max_retries=0
        )
        made.append(sdk)
        return session, sdk, client

    yield connect
    for sdk in made:
        await sdk.close()


async def test_a_whole_answer(connected: Callable[..., Any], server: ModelServer) -> None:
    session, sdk, _ = await connected()
    server.plan = [says("Hello.", calls=[("c1", "run", '{"x":  1}'), ("c2", "patch", '{"input": "+a"}')])]
    answer = await sdk.responses.create(model="m", input="hi", tools=[RUN, PATCH])
    assert answer.output_text == "Hello."
    assert [item.type for item in answer.output] == ["message", "function_call", "custom_tool_call"]
    assert (answer.output[1].arguments, answer.output[2].input) == ('{"x":  1}', "+a")
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (10, 5)
    [call] = (await session.close()).calls
    assert (call.dialect, call.wire) == (Dialect.RESPONSES, Dialect.CHAT)


async def test_every_streamed_event_is_one_that_openai_knows(
    connected: Callable[..., Any], server: ModelServer
) -> None:
    session, _, client = await connected()
    deltas: list[dict[str, Any]] = [
        {"role": "assistant", "reasoning_content": "hm"},
        {"content": "Hel"},
        {"content": "lo."},
        {"tool_calls": [{"index": 0, **CALL}]},
        {
            "tool_calls": [
                {"index": 1, "id": "c2", "function": {"name": "patch", "arguments": '{"input": "+a"}'}}
            ]
        },
    ]
    last = chunk({}, "tool_calls")
    server.plan = [streams(*map(chunk, deltas), last, {**last, "choices": [], "usage": USAGE})]
    body = {"model": "m", "input": "hi", "stream": True, "tools": [RUN, PATCH]}
    answer = await client.post(body, path="/responses")
    known = adapter(openai.types.responses.ResponseStreamEvent)
    parsed = [known.validate_python(event) for event in answer.events]
    assert parsed[-1].type == "response.completed"
    assert [item.type for item in parsed[-1].response.output] == [
        "reasoning", "message", "function_call", "custom_tool_call"
    ]  # fmt: skip
    assert parsed[-1].response.usage.total_tokens == 13
    assert server.asked[0].body["stream_options"] == {"include_usage": True}
    [call] = (await session.close()).calls
    assert (call.finish_reason, call.usage.output) == ("tool_calls", 4)


async def test_the_client_of_openai_puts_the_stream_together(
    connected: Callable[..., Any], server: ModelServer
) -> None:
    _, sdk, _ = await connected()
    server.plan = [streams(chunk({"content": "Hel"}), chunk({"content": "lo."}), chunk({}, "stop"))]
    async with sdk.responses.stream(model="m", input="hi") as stream:
        kinds = [event.type async for event in stream]
        final = await stream.get_final_response()
    assert (kinds[0], kinds[-1]) == ("response.created", "response.completed")
    assert final.output_text == "Hello."


async def test_a_talk_is_recorded_as_one_that_grows(
    connected: Callable[..., Any], server: ModelServer
) -> None:
    session, sdk, _ = await connected()
    server.plan = [says(None, calls=[("c1", "run", '{"x":  1}')], choice={}), says("Done.")]
    talk: list[Any] = [{"role": "user", "content": "hi"}]
    first = await sdk.responses.create(model="m", instructions="Be kind.", input=talk, tools=[RUN])
    talk += [item.model_dump() for item in first.output]
    talk.append({"type": "function_call_output", "call_id": "c1", "output": "1"})
    await sdk.responses.create(model="m", instructions="Be kind.", input=talk, tools=[RUN])
    assert server.asked[1].body["messages"][2] == {"role": "assistant", "content": None, "tool_calls": [CALL]}
    trajectory = await session.close()
    before, after = trajectory.calls
    assert (after.messages.base, after.messages.keep) == (before.index, 2)
    assert json.loads(trajectory.messages[after.messages.added[0]].raw) == json.loads(
        trajectory.messages[before.response or ""].raw
    )


async def test_what_was_dropped_is_recorded(connected: Callable[..., Any]) -> None:
    session, sdk, _ = await connected()
    await sdk.responses.create(model="m", input="hi", store=True, tools=[{"type": "web_search"}])
    [call] = (await session.close()).calls
    assert dict(call.dropped) == {"store": 1, "tools.web_search": 1}


async def test_an_answer_cannot_be_named_instead_of_sent(
    connected: Callable[..., Any], server: ModelServer
) -> None:
    _, sdk, _ = await connected()
    with pytest.raises(openai.BadRequestError, match="send the whole input"):
        await sdk.responses.create(model="m", input="hi", previous_response_id="resp_1")
    assert server.asked == []


async def test_an_error_has_openais_shape(connected: Callable[..., Any], server: ModelServer) -> None:
    _, sdk, _ = await connected(limits=Limits(calls=1))
    words = {"error": {"message": "too long", "code": "context_length_exceeded"}}
    server.otherwise = fails(400, words)
    with pytest.raises(openai.BadRequestError) as raised:
        await sdk.responses.create(model="m", input="hi")
    assert raised.value.code == "context_length_exceeded"
    with pytest.raises(openai.PermissionDeniedError) as refused:
        await sdk.responses.create(model="m", input="hi", stream=True)
    assert refused.value.code == "budget_exceeded"


async def test_a_stream_that_breaks_off_fails_in_its_own_dialect(
    connected: Callable[..., Any], server: ModelServer
) -> None:
    session, _, client = await connected()
    server.plan = [streams(chunk({"content": "Hel"}), done=False, reset=True)]
    answer = await client.post({"model": "m", "input": "hi", "stream": True}, path="/responses")
    failed = answer.events[-1]
    assert (failed["type"], failed["response"]["status"]) == ("response.failed", "failed")
    assert failed["response"]["error"]["message"]
    assert "[DONE]" not in answer.events
    [call] = (await session.close()).calls
    assert call.error is not None


async def test_a_client_may_leave_in_mid_stream(connected: Callable[..., Any], server: ModelServer) -> None:
    session, sdk, _ = await connected()
    pause = asyncio.Event()
    server.plan = [streams(chunk({"content": "Hel"}), chunk({}, "stop"), pause=pause)]
    stream = await sdk.responses.create(model="m", input="hi", stream=True)
    async for event in stream:
        if event.type == "response.output_text.delta":
            break
    await stream.close()
    trajectory = await session.close()
    pause.set()
    assert trajectory.calls[0].error is not None
