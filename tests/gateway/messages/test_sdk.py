"""Anthropic's own client against a model that speaks only chat."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import anthropic
import pytest

from orchard_core import Dialect, Limits, ModelEndpoint
from orchard_core.gateway.samples import build_samples
from orchard_core.gateway.scripted_tokens import ScriptedTokenModel
from orchard_core.types.sample import SampleLabel

from ..conftest import Open
from ..model_server import ModelServer, chunk, completion, fails, resets, says, sends, streams
from .talk import TOOLS

Sdk = Callable[[ModelEndpoint], anthropic.AsyncAnthropic]


@pytest.fixture
async def sdk() -> AsyncIterator[Sdk]:
    made: list[anthropic.AsyncAnthropic] = []

    def make(endpoint: ModelEndpoint) -> anthropic.AsyncAnthropic:
        made.append(anthropic.AsyncAnthropic(base_url=endpoint.root_url, api_key=endpoint.api_key))
        return made[-1]

    yield make
    for client in made:
        await client.close()


def ask(**fields: Any) -> Any:
    """The arguments of one request."""
    return {"model": "m", "max_tokens": 50, "messages": [{"role": "user", "content": "go"}], **fields}


async def test_a_whole_answer(server: ModelServer, open_session: Open, sdk: Sdk) -> None:
    server.plan = [says("hello", calls=[("c1", "run", '{"n":  1.0}')], reasoning_content="hm")]
    session, client = await open_session()
    message = await sdk(client.endpoint).messages.create(**ask(tools=TOOLS, system="Be brief."))
    assert [block.type for block in message.content] == ["text", "tool_use"]
    assert message.content[1].input == {"n": 1.0}
    assert (message.stop_reason, message.role, message.model) == ("tool_use", "assistant", "m")
    assert (message.usage.input_tokens, message.usage.output_tokens) == (10, 5)
    assert server.asked[0].body["messages"][0] == {"role": "system", "content": "Be brief."}
    trajectory = await session.close()
    (call,) = trajectory.calls
    assert (call.dialect, call.wire, call.dropped) == (Dialect.MESSAGES, Dialect.CHAT, {})
    assert (
        json.loads(trajectory.messages[call.response or ""].raw)
        == completion("hello", calls=[("c1", "run", '{"n":  1.0}')])["choices"][0]["message"]
    )


async def test_a_streamed_answer(server: ModelServer, open_session: Open, sdk: Sdk) -> None:
    def call(place: int, **function: str) -> dict[str, Any]:
        named = {"id": f"c{place}", "type": "function"} if "name" in function else {}
        return chunk({"tool_calls": [{"index": place, **named, "function": function}]})

    server.plan = [
        streams(
            chunk({"role": "assistant", "reasoning_content": "let me"}),
            chunk({"reasoning_content": " see"}),
            chunk({"content": "I'll "}),
            chunk({"content": "run it"}),
            call(0, name="run", arguments=""),
            call(0, arguments='{"n":'),
            call(1, name="run", arguments='{"m": 2'),
            call(0, arguments=" 1}"),
            call(1, arguments="}"),
            chunk({}, "tool_calls"),
            {"id": "c", "model": "m", "choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}},
        )
    ]
    session, client = await open_session()
    async with sdk(client.endpoint).messages.stream(**ask(tools=TOOLS)) as stream:
        text = [piece async for piece in stream.text_stream]
        message = await stream.get_final_message()
    assert text == ["I'll ", "run it"]
    assert [block.type for block in message.content] == ["thinking", "text", "tool_use", "tool_use"]
    assert message.content[0].thinking == "let me see"  # type: ignore[union-attr]
    assert [block.input for block in message.content[2:]] == [{"n": 1}, {"m": 2}]  # type: ignore[union-attr]
    assert (message.stop_reason, message.usage.input_tokens, message.usage.output_tokens) == (
        "tool_use",
        7,
        3,
    )
    (call_made,) = (await session.close()).calls
    assert (call_made.streamed, call_made.finish_reason) == (True, "tool_calls")


ODD = '{ "command" :"ls",  "depth": 1.0, "wide": "\\u00e9" }'
"""Arguments as no client would spell them."""


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_tool_loop_becomes_one_sample(open_session: Open, sdk: Sdk, streamed: bool) -> None:
    """What the client sends back is parsed and spelled anew; the model's own ids stand in the next prompt."""
    call = {"id": "c1", "type": "function", "function": {"name": "run", "arguments": ODD}}
    model = ScriptedTokenModel(
        [
            {"role": "assistant", "content": "I look. \n", "tool_calls": [call]},
            {"role": "assistant", "content": "Done."},
        ],
        name="m",
    )
    session, client = await open_session(model)
    talk: list[Any] = [{"role": "user", "content": [{"type": "text", "text": "go"}]}]
    for _ in range(2):
        fields = ask(messages=talk, tools=TOOLS, system="Be brief.")
        if streamed:
            async with sdk(client.endpoint).messages.stream(**fields) as stream:
                message = await stream.get_final_message()
        else:
            message = await sdk(client.endpoint).messages.create(**fields)
        content = [block.model_dump(exclude_none=True) for block in message.content]
        for block in content:
            if block["type"] == "text":
                block["text"] = block["text"].strip()  # as some clients do
        results = [
            {"type": "tool_result", "tool_use_id": block["id"], "content": "file"}
            for block in content
            if block["type"] == "tool_use"
        ]
        talk += [{"role": "assistant", "content": content}, {"role": "user", "content": results or "thanks"}]
    assert message.stop_reason == "end_turn"
    trajectory = await session.close()
    first, second = trajectory.calls
    assert second.messages.base == first.index
    assert second.prompt_tokens is not None
    assert second.prompt_tokens.base == first.index
    samples = build_samples(trajectory)
    (sample,) = samples.samples
    assert (sample.label, sample.calls, samples.untrained) == (SampleLabel.MAIN, (0, 1), ())
    sampled = len(first.completion_tokens or ()) + len(second.completion_tokens or ())
    assert sum(sample.mask) == sampled


async def test_errors_have_the_client_s_own_classes(
    server: ModelServer, open_session: Open, sdk: Sdk
) -> None:
    _, client = await open_session(limits=Limits(calls=4))
    messages = sdk(client.endpoint).messages
    with pytest.raises(anthropic.NotFoundError, match="serves the model"):
        await messages.create(**ask(model="claude"))
    with pytest.raises(anthropic.BadRequestError, match="must not be empty"):
        await messages.create(**ask(messages=[]))
    server.plan = [fails(413, {"error": {"message": "too long", "code": "context_length_exceeded"}})]
    with pytest.raises(anthropic.APIStatusError, match="prompt is too long: too long") as refused:
        await messages.create(**ask())
    assert refused.value.body == {
        "type": "error", "error": {"type": "request_too_large", "message": "prompt is too long: too long"},
    }  # fmt: skip
    server.otherwise = resets()
    with pytest.raises(anthropic.InternalServerError, match="connection"):
        await messages.create(**ask())
    server.otherwise, before = sends(b"<html>"), len(server.asked)
    with pytest.raises(anthropic.InternalServerError, match="not a chat completion"):
        await messages.create(**ask())
    assert len(server.asked) == before + 1, "x-should-retry keeps the client from repeating"
    server.otherwise = says()
    await messages.create(**ask())
    with pytest.raises(anthropic.PermissionDeniedError, match="calls budget is used up"):
        await messages.create(**ask())
    stranger = anthropic.AsyncAnthropic(base_url=client.endpoint.root_url, api_key="sk-orchard-wrong")
    with pytest.raises(anthropic.AuthenticationError, match="not one of a running rollout"):
        await stranger.messages.create(**ask())
    await stranger.close()


async def test_an_error_in_mid_stream_reaches_the_client(
    server: ModelServer, open_session: Open, sdk: Sdk
) -> None:
    server.plan = [streams(chunk({"content": "half"}), reset=True)]
    session, client = await open_session()
    with pytest.raises(anthropic.APIStatusError, match=r"closed|ended"):
        async with sdk(client.endpoint).messages.stream(**ask()) as stream:
            await stream.get_final_message()
    (call,) = (await session.close()).calls
    assert call.error is not None


async def test_models_and_counts_can_be_asked_for(open_session: Open, sdk: Sdk) -> None:
    session, client = await open_session()
    made = sdk(client.endpoint)
    assert [model.id async for model in made.models.list()] == ["m"]
    assert (await made.models.retrieve("m")).display_name == "m"
    with pytest.raises(anthropic.NotFoundError):
        await made.models.retrieve("other")
    few = await made.messages.count_tokens(model="m", messages=[{"role": "user", "content": "go"}])
    many = await made.messages.count_tokens(model="m", messages=[{"role": "user", "content": "go" * 4000}])
    assert 0 < few.input_tokens < 30
    assert 1990 < many.input_tokens < 2030
    assert (await session.close()).calls == ()
