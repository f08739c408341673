"""Random and mutated requests and answers in every dialect: read, or refused by a known error."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from functools import reduce
from typing import Any, TypeVar

import aiohttp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchard_core import ModelError, SessionContext
from orchard_core.gateway.conversation import Conversation, Head
from orchard_core.gateway.dialect import DialectCodec
from orchard_core.gateway.dialects import BY_PATH
from orchard_core.gateway.json_text import JsonFault
from orchard_core.gateway.scripted.replies import ScriptedModel
from orchard_core.gateway.scripted.reply import Reply, ReplyCall
from orchard_core.gateway.server import Gateway

from .client import Client
from .dialects import DIALECTS, Json, Spoken, events_of
from .model_server import chunk, completion

TEXTS = st.text(st.characters(exclude_categories=()), max_size=8)
"""Lone surrogates included, as some encoders send them."""
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
EACH = pytest.mark.parametrize("spoken", DIALECTS, ids=lambda spoken: spoken.name)

IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
RICH: dict[str, Json] = {
    "/chat/completions": {
        "messages": [
            {"role": "system", "content": "S"},
            {"role": "user", "content": [{"type": "text", "text": "go"}]},
            {"role": "assistant", "content": None, "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "run", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "c1", "content": "out"},
        ],
        "tools": [{"type": "function", "function": {"name": "run", "parameters": {"type": "object"}}}],
        "tool_choice": "auto", "stream_options": {"include_usage": True}, "temperature": 0.5,
    },
    "/responses": {
        "instructions": "S",
        "input": [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]},
            {"type": "reasoning", "id": "r", "summary": [], "content": [
                {"type": "reasoning_text", "text": "hm"}]},
            {"type": "function_call", "call_id": "c1", "name": "run", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": "out"},
        ],
        "tools": [
            {"type": "function", "name": "run", "parameters": {"type": "object"}},
            {"type": "custom", "name": "patch"}, {"type": "web_search"},
        ],
        "tool_choice": "auto", "reasoning": {"effort": "low"}, "text": {"format": {"type": "text"}},
    },
    "/messages": {
        "max_tokens": 9,
        "system": [{"type": "text", "text": "S", "cache_control": {"type": "ephemeral"}}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "go"}, IMAGE]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "hm", "signature": "orchard:reasoning"},
                {"type": "tool_use", "id": "c1", "name": "run", "input": {"n": 1}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "c1", "is_error": True, "content": [
                    {"type": "text", "text": "out"}, IMAGE]}]},
        ],
        "tools": [{"name": "run", "input_schema": {}}, {"type": "bash_20250124", "name": "bash"}],
        "tool_choice": {"type": "any"}, "output_config": {"effort": "low"}, "thinking": {"type": "enabled"},
    },
}  # fmt: skip
"""A request of each dialect that holds most of what it knows."""

CHAT_ANSWER = completion("hello", calls=[("c1", "run", '{"n": 1}')], id="x")
CHAT_ANSWER["choices"][0]["message"]["reasoning_content"] = "hm"
CHAT_CHUNKS = (
    chunk({"role": "assistant", "reasoning_content": "hm"}),
    chunk({"content": "hello"}),
    chunk({"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "run", "arguments": "{"}}]}),
    chunk({"tool_calls": [{"index": 0, "function": {"arguments": "}"}}]}),
    chunk({}, "tool_calls"),
    {"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 2}},
)


def places(value: object, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Ways to everything inside."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, each in inner for place in places(each, (*path, key)))]


def changed(value: Json, path: tuple[Any, ...], change: Callable[[Any, Any], None]) -> Json:
    """A copy with one thing inside changed; `change` gets what holds it, and its key."""
    copy: Json = json.loads(json.dumps(value))
    if path:
        change(reduce(lambda holder, key: holder[key], path[:-1], copy), path[-1])
    return copy


@st.composite
def mutated(draw: st.DrawFn, value: Json) -> Json:
    """The value with one to three things in it taken out, doubled or replaced by anything."""
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(places(value)))
        kind, other = draw(st.integers(0, 2)), draw(VALUES)

        def change(holder: Any, key: Any, kind: int = kind, other: object = other) -> None:
            if kind == 0:
                del holder[key]
            elif kind == 1 and isinstance(holder, list):
                holder.insert(key, holder[key])
            else:
                holder[key] = other

        value = changed(value, path, change)
    return value


T = TypeVar("T")


def unless(error: type[Exception], make: Callable[[], T]) -> T | None:
    """What is made; None when that raises the error, with words in it."""
    try:
        return make()
    except error as raised:
        if not str(raised):
            raise
        return None


def codec_of(spoken: Spoken) -> DialectCodec:
    codec = BY_PATH[f"/v1{spoken.path}"].codec(spoken.served)
    assert codec is not None
    return codec


def request_of(spoken: Spoken) -> Json:
    return {"model": "m", **RICH[spoken.path]}


def encoded(value: object, escaped: bool = True) -> bytes:
    return json.dumps(value, ensure_ascii=escaped).encode("utf-8", "surrogatepass")


@EACH
def test_the_rich_requests_are_read(spoken: Spoken) -> None:
    """Or else the tests below would try nothing."""
    assert codec_of(spoken).request(encoded(request_of(spoken)), Conversation()).model == "m"


@EACH
@settings(max_examples=80, deadline=None)
@given(data=st.data(), escaped=st.booleans())
def test_a_request_is_read_or_refused(spoken: Spoken, data: st.DataObject, escaped: bool) -> None:
    """And what is read can be recorded, and heard again by the next request."""
    body = encoded(data.draw(mutated(request_of(spoken))), escaped)
    codec, conversation = codec_of(spoken), Conversation()
    request = unless(JsonFault, lambda: codec.request(body, conversation))
    if request is None:
        return
    assert json.loads(request.body)["model"] == request.model
    refs = conversation.refs(request.heard)
    assert len(refs.added) == len(request.heard.sent)
    json.dumps([message.model_dump_json() for message in conversation.message_records().values()])
    conversation.advance(Head(index=0, sent=request.heard.sent, answer="{}"), request.heard)
    again = codec.request(body, conversation).heard
    assert (again.keep, list(again.sent)) == (len(request.heard.sent), list(request.heard.sent))


@EACH
@settings(max_examples=60, deadline=None)
@given(body=st.binary(max_size=80) | VALUES.map(encoded))
def test_a_body_of_anything_is_read_or_refused(spoken: Spoken, body: bytes) -> None:
    with suppress(JsonFault):
        request = codec_of(spoken).request(body, Conversation())
        assert request.heard.sent, "what is read has a conversation"


@EACH
@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_an_answer_is_translated_or_refused(spoken: Spoken, data: st.DataObject) -> None:
    codec = codec_of(spoken)
    request = codec.request(encoded(request_of(spoken)), Conversation())
    native = spoken.answer if spoken.native else CHAT_ANSWER
    body = encoded(data.draw(mutated(native)))
    answer = unless(ModelError, lambda: codec.reply(body))
    whole = unless(ModelError, lambda: codec.outgoing(body, request))
    assert answer is None or answer.message is not None
    assert answer is None or whole is None or isinstance(json.loads(whole), dict)


@EACH
@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_a_stream_is_translated_or_refused(spoken: Spoken, data: st.DataObject) -> None:
    codec = codec_of(spoken)
    request = codec.request(encoded(request_of(spoken)), Conversation())
    events = list(spoken.events if spoken.native else CHAT_CHUNKS)
    at = data.draw(st.integers(0, len(events) - 1))
    events[at] = data.draw(mutated(events[at]))
    order = data.draw(st.just(events) | st.permutations(events))
    assembler = codec.assembler(request)
    sent = b""
    with suppress(ModelError):
        for event in order:
            sent += assembler.feed(encoded(event)) or b""
        sent += assembler.end()
    assembler.answer()
    assert not sent or list(events_of(sent))


MODEL = ScriptedModel(lambda _: Reply(text="ok", calls=(ReplyCall(name="run", arguments="{"),)), name="m")


@pytest.mark.parametrize(
    "spoken", [row for row in DIALECTS if row.served == {"chat"}], ids=lambda row: row.name
)
@settings(max_examples=25, deadline=None)
@given(data=st.data(), stream=st.booleans())
def test_whatever_is_sent_is_answered_and_recorded(spoken: Spoken, data: st.DataObject, stream: bool) -> None:
    """Through the whole gateway: 200 or a refusal in the dialect's shape, and a record that can be stored."""
    body = encoded({**data.draw(mutated({**request_of(spoken), "stream": stream})), "model": "m"})

    async def check() -> None:
        async with Gateway() as gateway, aiohttp.ClientSession() as http:
            session = await gateway.open_session(MODEL, SessionContext())
            answer = await spoken.post(Client(http, session.endpoint), body)
            if answer.status != 200:
                assert answer.status == 400
                assert spoken.message(answer.json)
            elif answer.headers["content-type"] == "text/event-stream":
                assert "error" not in [event for event in events_of(answer.raw) if event == "error"]
            trajectory = await session.close()
            again = trajectory.model_validate_json(trajectory.model_dump_json())
            assert again == trajectory
            assert len(again.calls) == (1 if answer.status == 200 or _reached(answer.raw) else 0)

    asyncio.run(check())


def _reached(raw: bytes) -> bool:
    """The model itself refused."""
    return b"cannot be read" not in raw
