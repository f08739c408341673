"""Token ids and log-probabilities from server to training sample, never tokenised again (fault 22)."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from aiohttp import web

from orchard_core import UpstreamMode
from orchard_core.gateway.openai import OpenAIModel
from orchard_core.gateway.samples import build_samples
from orchard_core.gateway.scripted_tokens import END, ByteRenderer, ScriptedTokenModel, logprob
from orchard_core.gateway.session import Session
from orchard_core.testing.fakes.model import FakeModel

from .client import tool, user
from .conftest import Open
from .model_server import Asked, ModelServer, chunk, completion, fails, says, streams

SCORES = {"content": [{"token": "a", "logprob": -0.5}, {"token": "b", "logprob": -1.5}]}
CALL = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": '{"cmd":  "ls"}'}}


def told(**choice: Any) -> dict[str, Any]:
    """A completion of a server that tells ids."""
    fields = {"token_ids": [7, 8], "logprobs": SCORES, **choice}
    return completion(choice=fields, prompt_token_ids=[1, 2, 3])


async def tells(asked: Asked) -> web.StreamResponse:
    """A server that tells ids to those who ask."""
    asks = asked.body.get("return_token_ids") and asked.body.get("logprobs")
    return web.json_response(told() if asks else completion())


async def test_ids_are_asked_for_recorded_and_kept_from_the_harness(
    server: ModelServer, open_session: Open
) -> None:
    server.otherwise = tells
    session, client = await open_session()
    answer = await client.say("go")
    assert answer.json == completion()
    assert server.asked[0].body["messages"] == [user("go")]
    (call,) = (await session.close()).calls
    assert call.prompt_tokens is not None
    assert call.prompt_tokens.added == (1, 2, 3)
    assert (call.completion_tokens, call.logprobs) == ((7, 8), (-0.5, -1.5))


async def test_a_harness_that_asks_gets_them_itself(server: ModelServer, open_session: Open) -> None:
    server.otherwise = tells
    _, client = await open_session()
    answer = await client.say("go", logprobs=True, return_token_ids=True)
    assert answer.json == told()
    only = await client.say("go", logprobs=True)
    assert only.json == completion(choice={"logprobs": SCORES})


async def test_ids_of_a_stream_are_recorded_and_kept_from_the_harness(
    server: ModelServer, open_session: Open
) -> None:
    def scored(token: int, text: str) -> dict[str, Any]:
        extra = {"token_ids": [token], "logprobs": {"content": [{"token": text, "logprob": -token / 10}]}}
        return chunk({"content": text}, choice=extra)

    first = chunk({"role": "assistant", "content": ""}, prompt_token_ids=[1, 2])
    server.plan = [
        streams(first, scored(5, "a"), scored(6, "b"), chunk({}, "stop", choice={"token_ids": []}))
    ]
    session, client = await open_session()
    answer = await client.say("go", stream=True)
    assert "token_ids" not in answer.raw.decode()
    assert "logprob" not in answer.raw.decode()
    (call,) = (await session.close()).calls
    assert call.prompt_tokens is not None
    assert call.prompt_tokens.added == (1, 2)
    assert (call.completion_tokens, call.logprobs) == ((5, 6), (-0.5, -0.6))


@pytest.mark.parametrize("stream", [False, True])
async def test_a_server_that_refuses_our_fields_is_asked_without_them_from_then_on(
    server: ModelServer, open_session: Open, connect: Any, stream: bool
) -> None:
    async def strict(asked: Asked) -> web.StreamResponse:
        if "return_token_ids" in asked.body:
            return await fails(400, {"error": {"message": "Unrecognized argument: return_token_ids"}})(asked)
        plain = streams(chunk({"content": "hello"}, "stop")) if asked.body.get("stream") else says()
        return await plain(asked)

    server.otherwise = strict
    model: OpenAIModel = connect()
    session, client = await open_session(model)
    assert _mode(session) is UpstreamMode.CHAT
    for at in range(2):
        assert (await client.say(f"{at}", stream=stream)).status == 200
    assert ["return_token_ids" in asked.body for asked in server.asked] == [True, False, False]
    assert _mode(session) is UpstreamMode.TEXT
    trajectory = await session.close()
    assert trajectory.calls[0].completion_tokens is None
    assert "no token ids" in build_samples(trajectory).unusable


async def test_a_request_that_is_bad_anyway_does_not_change_the_mode(
    server: ModelServer, open_session: Open
) -> None:
    server.plan = [fails(400), fails(400)]
    server.otherwise = tells
    session, client = await open_session()
    assert (await client.say("bad")).status == 400
    await client.say("good")
    assert (await session.close()).calls[1].completion_tokens == (7, 8)


async def test_ids_that_must_be_had_are_not_done_without(server: ModelServer, open_session: Open) -> None:
    server.otherwise = fails(400)
    _, client = await open_session(token_ids="on")
    assert (await client.say("go")).status == 400
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    "choice",
    [
        {"token_ids": ["a"]},
        {"token_ids": [2**70]},
        {"token_ids": 5},
        {"logprobs": {"content": [{"token": "a"}]}},
        {"logprobs": {"content": [{"token": "a", "logprob": None}]}},
        {"logprobs": 3},
        {"logprobs": {"content": SCORES["content"][:1]}},
    ],
)
async def test_ids_that_do_not_fit_are_not_used(
    server: ModelServer, open_session: Open, choice: dict[str, Any]
) -> None:
    server.otherwise = _sends(told(**choice))
    session, client = await open_session()
    assert (await client.say("go")).message["content"] == "hello"
    trajectory = await session.close()
    assert trajectory.calls[0].logprobs is None
    assert build_samples(trajectory).samples == ()


def _mode(session: Session) -> UpstreamMode:
    return session.upstream.mode


def _sends(body: object) -> Any:
    async def act(asked: Asked) -> web.StreamResponse:
        return web.json_response(body)

    return act


async def test_prompts_are_stored_as_changes(open_session: Open) -> None:
    session, client = await open_session(FakeModel(["one", "two", "three"]))
    messages = [user("begin " + "x" * 500)]
    for at in range(3):
        answer = await client.chat(messages)
        messages += [answer.message, user(f"more {at}")]
    trajectory = await session.close()
    refs = [call.prompt_tokens for call in trajectory.calls]
    assert all(ref is not None for ref in refs)
    assert [ref.base for ref in refs if ref] == [None, 0, 1]
    assert all(len(ref.added) < 60 for ref in refs[1:] if ref)
    (sample,) = build_samples(trajectory).samples
    assert sample.calls == (0, 1, 2)


async def test_token_in_sends_back_the_very_ids_that_were_sampled(open_session: Open) -> None:
    model = ScriptedTokenModel(
        [
            {"role": "assistant", "content": "look", "tool_calls": [CALL]},
            {"role": "assistant", "content": "naïve 😀"},
            {"role": "assistant", "content": "done"},
        ],
        version="step-3",
    )
    session, client = await open_session(model)
    messages = [user("begin")]
    for at, observation in enumerate([tool("c1", "a.txt"), user("go on"), user("end")]):
        answer = await client.chat(messages)
        assert answer.status == 200
        assert answer.json["choices"][0]["finish_reason"] == ("tool_calls" if at == 0 else "stop")
        messages += [answer.message, observation]
    (upstream,) = model.upstreams
    trajectory = await session.close()
    for (prompt, call), (after, _) in pairwise(zip(upstream.prompts, trajectory.calls, strict=True)):
        before = [*prompt, *(call.completion_tokens or ())]
        assert list(after[: len(before)]) == before
        assert list(after).count(END) == list(before).count(END) + 1
    made = build_samples(trajectory)
    (sample,) = made.samples
    assert made.untrained == ()
    answers = [token for call in trajectory.calls for token in call.completion_tokens or ()]
    assert [token for token, mask in zip(sample.token_ids, sample.mask, strict=True) if mask] == answers
    expected = [
        logprob(token, place)
        for call in trajectory.calls
        for place, token in enumerate(call.completion_tokens or ())
    ]
    assert [value for value, mask in zip(sample.logprobs, sample.mask, strict=True) if mask] == expected
    assert {span.version for span in sample.versions} == {"step-3"}
    assert trajectory.cost_usd == 0.0


async def test_token_in_renders_anew_when_an_answer_was_changed(open_session: Open) -> None:
    model = ScriptedTokenModel([{"role": "assistant", "content": "thinking... answer"}])
    session, client = await open_session(model)
    await client.chat([user("q")])
    changed = [user("q"), {"role": "assistant", "content": "answer"}, user("more")]
    await client.chat(changed)
    (upstream,) = model.upstreams
    body = json.dumps({"messages": changed}).encode()
    assert list(upstream.prompts[1]) == list(ByteRenderer().render(body))
    made = build_samples(await session.close())
    assert [span.reason.value for span in made.untrained] == ["drift"]


async def test_token_in_answers_can_be_streamed(open_session: Open) -> None:
    model = ScriptedTokenModel([{"role": "assistant", "content": "look", "tool_calls": [CALL]}])
    session, client = await open_session(model)
    answer = await client.say("go", stream=True, stream_options={"include_usage": True})
    assert answer.events[-1] == "[DONE]"
    assert answer.events[0]["choices"][0]["delta"]["tool_calls"][0]["function"] == CALL["function"]
    assert answer.events[-2]["usage"]["completion_tokens"] > 0
    (call,) = (await session.close()).calls
    assert call.streamed
    assert call.completion_tokens is not None
    assert call.finish_reason == "tool_calls"
