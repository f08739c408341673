"""Responses to an upstream that speaks them: nothing is changed, everything is recorded."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from orchard_core import Dialect, ModelCall, UpstreamReply, Usage
from orchard_core.gateway.conversation import Conversation
from orchard_core.gateway.json_text import JsonFault
from orchard_core.gateway.openai import OpenAIConfig, OpenAIModel
from orchard_core.gateway.responses.codec import ResponsesCodec

from ..client import Answer, Client
from ..conftest import Open
from .server import ITEMS, Json, Server, events, response

PATH = "/responses"
PRICE = {"input": 1.0, "output": 2.0}
HI = {"role": "user", "content": "hi"}


@pytest.fixture
async def answers() -> AsyncIterator[Server]:
    made = Server()
    await made.start()
    yield made
    await made.stop()


class Talk:
    """A session with such an upstream."""

    def __init__(self, session: Any, client: Client) -> None:
        self.session = session
        self.client = client

    async def ask(self, body: Json | bytes) -> Answer:
        """One request."""
        return await self.client.post(body if isinstance(body, bytes) else {"model": "m", **body}, path=PATH)

    async def calls(self) -> list[ModelCall]:
        """What was recorded."""
        return list((await self.session.close()).calls)

    def message(self, key: str | None) -> Json:
        """A recorded message."""
        found: Json = json.loads(self.session.conversation.messages[key][1])
        return found


@pytest.fixture
async def talk(answers: Server, open_session: Open) -> AsyncIterator[Talk]:
    settings = {"model": "m", "base_url": answers.url, "dialects": ["responses"], "price": PRICE}
    model = OpenAIModel(OpenAIConfig.model_validate(settings))
    yield Talk(*await open_session(model))
    await model.close()


async def test_a_request_passes_byte_for_byte(talk: Talk, answers: Server) -> None:
    body = '{"model": "m",  "input":"hü", "previous_response_id": "r0", "vendor": {"a": [1.0, 1e2]}}'.encode()
    assert (await talk.ask(body)).json == response()
    assert answers.bodies == [body]


async def test_an_answer_is_recorded_by_its_items(talk: Talk) -> None:
    await talk.ask(
        {"input": [HI], "instructions": "Be kind.", "tools": [{"type": "web_search"}], "top_p": 0.5}
    )
    [call] = await talk.calls()
    assert (call.dialect, call.wire) == (Dialect.RESPONSES, None)
    assert not call.dropped
    assert [talk.message(key) for key in call.messages.added] == [
        {"role": "system", "content": "Be kind."},
        HI,
    ]
    assert talk.message(call.response) == {"role": "assistant", "output": ITEMS}
    assert call.finish_reason == "tool_calls"
    assert call.usage == Usage(input=6, cache_read=4, output=5)
    assert call.cost_usd == pytest.approx((10 * 1.0 + 5 * 2.0) / 1e6)
    assert json.loads(call.params) == {"model": "m", "top_p": 0.5}


async def test_a_stream_passes_with_its_event_names_and_is_recorded_alike(talk: Talk) -> None:
    answer = await talk.ask({"input": "hi", "stream": True})
    assert answer.events == events()
    names = [line[7:] for line in answer.raw.decode().split("\n") if line.startswith("event: ")]
    assert names == [event["type"] for event in events()]
    [call] = await talk.calls()
    assert talk.message(call.response) == {"role": "assistant", "output": ITEMS}
    assert (call.finish_reason, call.usage.output) == ("tool_calls", 5)


async def test_items_may_be_missing_from_the_last_event(talk: Talk, answers: Server) -> None:
    answers.streamed = events({"type": "response.completed", "response": {"status": "completed"}})
    await talk.ask({"input": "hi", "stream": True})
    [call] = await talk.calls()
    assert talk.message(call.response) == {"role": "assistant", "output": ITEMS}


async def test_a_stream_that_breaks_off_is_recorded_as_far_as_it_came(talk: Talk, answers: Server) -> None:
    answers.streamed = events()[:7]
    answer = await talk.ask({"input": "hi", "stream": True})
    assert answer.events[-1]["type"] == "response.failed"
    assert "ended in the middle" in answer.events[-1]["response"]["error"]["message"]
    [call] = await talk.calls()
    part = {"type": "output_text", "text": "Hello."}
    assert talk.message(call.response)["output"] == [
        ITEMS[0],
        {**ITEMS[1], "status": "in_progress", "content": [part]},
    ]
    assert call.error is not None
    assert call.error.kind == "ModelReplyMalformed"


async def test_a_conversation_is_stored_as_what_it_adds(talk: Talk) -> None:
    output = {"type": "function_call_output", "call_id": "c", "output": "1"}
    await talk.ask({"input": [HI]})
    await talk.ask({"input": [HI, *ITEMS, output]})
    first, second = await talk.calls()
    assert (second.messages.base, second.messages.keep) == (first.index, 1)
    roles = [talk.session.conversation.messages[key][0] for key in second.messages.added]
    assert roles == ["assistant", "assistant", "assistant", "tool"]


@pytest.mark.parametrize(
    ("fields", "finish"),
    [
        ({"output": ITEMS[:2]}, "stop"),
        ({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, "length"),
        ({"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}, "content_filter"),
        ({"status": "incomplete"}, "incomplete"),
    ],
)
async def test_why_it_ended(talk: Talk, answers: Server, fields: Json, finish: str) -> None:
    answers.whole = response(**fields)
    await talk.ask({"input": "hi"})
    answers.streamed = events({"type": f"response.{answers.whole['status']}", "response": answers.whole})
    await talk.ask({"input": "hi", "stream": True})
    assert [call.finish_reason for call in await talk.calls()] == [finish, finish]


@pytest.mark.parametrize(
    ("code", "kind", "status"),
    [("context_length_exceeded", "ModelRejected", 400), ("server_error", "ModelUnavailable", 502)],
)
async def test_a_response_that_failed_is_an_error(
    talk: Talk, answers: Server, code: str, kind: str, status: int
) -> None:
    error = {"code": code, "message": "no"}
    answers.whole = response(status="failed", error=error, output=[])
    answer = await talk.ask({"input": "hi"})
    assert answer.status == status
    answers.streamed = [*events()[:2], {"type": "response.failed", "response": answers.whole}]
    last = (await talk.ask({"input": "hi", "stream": True})).events[-1]
    assert last["type"] == "response.failed"
    assert "no" in last["response"]["error"]["message"]
    assert [call.error and call.error.kind for call in await talk.calls()] == [kind, kind]


@pytest.mark.parametrize("whole", [{}, {"output": 3}, {"object": "error"}])
async def test_what_is_no_response_is_malformed(talk: Talk, answers: Server, whole: Json) -> None:
    answers.whole = whole
    answer = await talk.ask({"input": "hi"})
    assert (answer.status, answer.error["code"]) == (502, "upstream_malformed")


async def test_chat_cannot_be_had_from_it(talk: Talk) -> None:
    answer = await talk.client.say("hi")
    assert answer.status >= 400
    assert answer.error["message"]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"[]", "JSON object"),
        (b'{"model": "m"}', "`input` is missing"),
        (b'{"model": "m", "input": []}', "`input` is empty"),
        (b'{"model": "m", "input": 3}', "string or an array"),
        (b'{"model": "m", "input": ["x"]}', "must be an object"),
        (b'{"model": "m", "model": "n", "input": "x"}', "given twice"),
        (b'{"input": "x"}', "`model`"),
        (b'{"model": "m", "input": "x", "stream": 1}', "`stream`"),
    ],
)
def test_a_request_that_is_none_is_refused_in_words(body: bytes, words: str) -> None:
    with pytest.raises(JsonFault, match=words):
        ResponsesCodec().request(body, Conversation())


def test_raw_surrogates_go_out_as_escapes() -> None:
    body = '{"model": "m", "input": "\ud83d"}'.encode("utf-8", "surrogatepass")
    assert json.loads(ResponsesCodec().request(body, Conversation()).body)["input"] == "\ud83d"


def test_a_recorded_message_makes_an_answer_again() -> None:
    codec = ResponsesCodec()
    recorded = codec.reply(json.dumps(response()).encode()).message
    assert recorded is not None
    body = codec.from_message(
        recorded, model="m", finish_reason="stop", usage=Usage(input=6, cache_read=4, output=5)
    )
    answer = codec.reply(body)
    assert json.loads(answer.message or "") == json.loads(recorded)
    assert answer.usage == Usage(input=6, cache_read=4, output=5)


def test_a_whole_answer_makes_a_stream_that_says_the_same() -> None:
    codec = ResponsesCodec()
    body = json.dumps(response()).encode()
    request = codec.request(b'{"model": "m", "input": "x"}', Conversation())
    assembler = codec.assembler(request)
    for payload in codec.chunks(UpstreamReply(body=body)):
        assembler.feed(payload)
    streamed, whole = assembler.answer(), codec.reply(body)
    assert json.loads(streamed.message or "") == json.loads(whole.message or "")
    assert (streamed.finish_reason, streamed.usage) == (whole.finish_reason, whole.usage)
