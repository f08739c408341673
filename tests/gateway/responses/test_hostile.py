"""Requests and streams of any shape: refused in words, or translated; never anything else."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchard_core.errors import ModelError
from orchard_core.gateway.conversation import Conversation
from orchard_core.gateway.json_text import JsonFault
from orchard_core.gateway.responses.carried import MARK
from orchard_core.gateway.responses.codec import ResponsesCodec
from orchard_core.gateway.responses.translation import ResponsesTranslation

from .talk import NOTES

WORDS = (
    "message reasoning function_call custom_tool_call function_call_output namespace function custom user "
    "assistant developer input_text refusal json_schema"
)
NAMES = (
    "type role content text name call_id arguments input output tools refusal summary encrypted_content "
    "namespace format parameters image_url effort id index delta choices message tool_calls function usage "
    "finish_reason prompt_tokens"
)
FIELDS = "input instructions tools tool_choice text reasoning include stream metadata"
leaves = st.none() | st.booleans() | st.integers() | st.sampled_from([*WORDS.split(), MARK, "\ud800"])
values = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES.split()), inner, max_size=5)
    ),
    max_leaves=20,
)
fields = st.dictionaries(st.sampled_from(FIELDS.split()), values)
told_events = st.tuples(st.sampled_from(["response.output_item.added", "response.output_text.delta"]), values)


def body(value: object) -> bytes:
    """As JSON."""
    return json.dumps(value).encode()


@given(fields)
def test_a_request_is_translated_or_refused(asked: dict[str, Any]) -> None:
    with suppress(JsonFault):
        told = ResponsesTranslation().request(body({"model": "m", **asked}), Conversation())
        assert json.loads(told.body)["messages"]
        assert all(isinstance(name, str) and count > 0 for name, count in told.dropped.items())


@given(fields)
def test_a_native_request_is_read_or_refused(asked: dict[str, Any]) -> None:
    with suppress(JsonFault):
        request = ResponsesCodec().request(body({"model": "m", **asked}), Conversation())
        assert json.loads(request.body) == {"model": "m", **asked}
        assert len(request.heard.sent) == len(request.heard.roles)


@given(values)
def test_an_answer_is_translated_or_malformed(value: object) -> None:
    for whole in (value, {"choices": [{"message": value}]}):
        with suppress(ModelError):
            told = json.loads(ResponsesTranslation().reply(body(whole), NOTES))
            assert (told["object"], isinstance(told["output"], list)) == ("response", True)


@given(st.lists(values, max_size=4))
def test_a_stream_is_translated_or_malformed(deltas: list[object]) -> None:
    events = ResponsesTranslation().events(NOTES)
    with suppress(ModelError):
        for delta in deltas:
            events.feed(body({"choices": [{"delta": delta}]}))
        assert events.end().endswith(b"\n\n")


@given(values)
def test_a_native_answer_is_read_or_malformed(value: object) -> None:
    with suppress(ModelError):
        answer = ResponsesCodec().reply(body({"status": "completed", "output": value}))
        assert json.loads(answer.message or "null") == {"role": "assistant", "output": value}
    with suppress(ModelError):
        assert ResponsesCodec().reply(body(value)).message is not None


@given(st.lists(told_events))
def test_a_native_stream_is_read_or_malformed(told: list[tuple[str, object]]) -> None:
    codec = ResponsesCodec()
    assembler = codec.assembler(codec.request(b'{"model": "m", "input": "x"}', Conversation()))
    with suppress(ModelError):
        for kind, value in told:
            assembler.feed(body({"type": kind, "output_index": value, "item": value, "delta": value}))
    assert assembler.answer().finish_reason is None, "no event said that it was over"


@pytest.mark.parametrize("depth", [200, 100_000])
def test_nesting_is_passed_on_untouched_until_it_is_too_deep(depth: int) -> None:
    deep = b'{"model": "m", "input": [{"role": "user", "content": ' + b"[" * depth + b"]" * depth + b"}]}"
    with pytest.raises(JsonFault):
        ResponsesTranslation().request(deep, Conversation())
    if depth < 1000:
        assert ResponsesCodec().request(deep, Conversation()).body == deep
    else:
        with pytest.raises(JsonFault):
            ResponsesCodec().request(deep, Conversation())
