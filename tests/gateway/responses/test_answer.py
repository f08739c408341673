"""A chat answer as a response, whole and streamed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from orchard_core.errors import ModelReplyMalformed
from orchard_core.gateway.responses.translation import ResponsesTranslation

from .talk import NOTES, Json, answered, completion, sent_back, streamed


def called(name: str, arguments: str, key: str = "call_1") -> Json:
    """A tool call."""
    return {"id": key, "type": "function", "function": {"name": name, "arguments": arguments}}


def assistant(text: str | None, *calls: Json, **fields: Any) -> Json:
    """A model's message."""
    message: Json = {"role": "assistant", "content": text, **fields}
    return {**message, "tool_calls": list(calls)} if calls else message


def chunk(delta: Json, finish: str | None = None, **fields: Any) -> bytes:
    """A chunk."""
    choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
    return json.dumps({"id": "c", "created": 7, "model": "m", "choices": choices, **fields}).encode()


def test_an_answer_is_a_response() -> None:
    usage = {
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 2},
    }
    response = answered(assistant("Hi."), usage=usage)
    assert (response["object"], response["status"], response["created_at"]) == ("response", "completed", 7)
    assert [item["type"] for item in response["output"]] == ["message"]
    assert response["output"][0]["content"][0] == {
        "type": "output_text", "text": "Hi.", "annotations": [], "logprobs": []
    }  # fmt: skip
    assert response["usage"] == {
        "input_tokens": 10,
        "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 0},
        "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 2},
        "total_tokens": 15,
    }


def test_reasoning_text_and_calls_come_in_this_order() -> None:
    message = assistant(
        "See:", called("run", '{"x":  1}'), called("agents__spawn", "{}", "call_2"), reasoning="hm"
    )
    output = answered(message, "tool_calls")["output"]
    assert [item["type"] for item in output] == ["reasoning", "message", "function_call", "function_call"]
    assert output[0]["summary"] == [{"type": "summary_text", "text": "hm"}]
    assert (output[2]["call_id"], output[2]["arguments"]) == ("call_1", '{"x":  1}')
    assert (output[3]["namespace"], output[3]["name"]) == ("agents", "spawn")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ('{"input": "a\\nb"}', "a\nb"),
        ('{"input":"a"}', "a"),
        ('{"input": 3}', '{"input": 3}'),
        ("oops", "oops"),
    ],
)
def test_a_custom_tool_gets_its_text_and_the_model_its_own_words(arguments: str, text: str) -> None:
    message = assistant(None, called("patch", arguments))
    output = answered(message)["output"]
    assert (output[0]["type"], output[0]["input"]) == ("custom_tool_call", text)
    assert sent_back(output) == message


@pytest.mark.parametrize(
    ("finish", "status", "reason"),
    [
        ("stop", "completed", None),
        ("tool_calls", "completed", None),
        ("length", "incomplete", "max_output_tokens"),
        ("content_filter", "incomplete", "content_filter"),
    ],
)
def test_why_an_answer_ended(finish: str, status: str, reason: str | None) -> None:
    response = answered(assistant("Hi."), finish)
    details = response["incomplete_details"]
    assert (response["status"], details and details["reason"]) == (status, reason)
    last = streamed([chunk({"content": "Hi."}), chunk({}, finish)])[-1]
    assert last["type"] == f"response.{status}"
    assert last["response"]["incomplete_details"] == details


def test_unreported_usage_is_null() -> None:
    assert answered(assistant("Hi."))["usage"] is None


def test_an_empty_answer_is_an_empty_message() -> None:
    assert [item["type"] for item in answered(assistant(None))["output"]] == ["message"]
    events = streamed([chunk({"role": "assistant"}), chunk({}, "stop")])
    assert [item["type"] for item in events[-1]["response"]["output"]] == ["message"]


def test_a_call_without_an_id_gets_one() -> None:
    assert answered(assistant(None, called("run", "{}", "")))["output"][0]["call_id"]
    piece = {"tool_calls": [{"index": 0, "function": {"name": "run", "arguments": "{}"}}]}
    assert streamed([chunk(piece), chunk({}, "stop")])[-1]["response"]["output"][0]["call_id"]


@pytest.mark.parametrize(
    "body", [b"nonsense", b"[]", b"{}", b'{"choices": []}', b'{"choices": [{"message": 3}]}']
)
def test_what_is_no_answer_is_malformed(body: bytes) -> None:
    with pytest.raises(ModelReplyMalformed):
        ResponsesTranslation().reply(body, NOTES)
    with pytest.raises(ModelReplyMalformed):
        ResponsesTranslation().reply(completion({"tool_calls": [{}]}), NOTES)


def test_the_events_of_a_text() -> None:
    events = streamed([chunk({"content": "He"}), chunk({"content": "llo"}), chunk({}, "stop")])
    assert [event["type"].removeprefix("response.") for event in events] == [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]
    assert [event["delta"] for event in events if event["type"].endswith("delta")] == ["He", "llo"]
    assert {event["item_id"] for event in events if "item_id" in event} == {events[2]["item"]["id"]}
    assert events[6]["text"] == "Hello"


def test_the_events_of_reasoning_and_calls() -> None:
    pieces: list[Json] = [
        {"reasoning_content": "hm"},
        {"tool_calls": [{"index": 0, **called("run", "")}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]},
        {"tool_calls": [{"index": 1, **called("patch", '{"input": "x"}', "call_2")}]},
    ]
    events = streamed([*map(chunk, pieces), chunk({}, "tool_calls")])
    assert [event["type"].removeprefix("response.") for event in events[2:-1]] == [
        "output_item.added",
        "reasoning_summary_part.added",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.done",
        "reasoning_summary_part.done",
        "output_item.done",
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
        "output_item.added",
        "custom_tool_call_input.delta",
        "custom_tool_call_input.done",
        "output_item.done",
    ]
    assert [item["type"] for item in events[-1]["response"]["output"]] == [
        "reasoning",
        "function_call",
        "custom_tool_call",
    ]


def test_text_out_of_order_stays_in_its_message() -> None:
    pieces: list[Json] = [
        {"content": "one "},
        {"tool_calls": [{"index": 0, **called("run", "{}")}]},
        {"content": "two"},
        {"reasoning_content": "late"},
    ]
    items = streamed([*map(chunk, pieces), chunk({}, "stop")])[-1]["response"]["output"]
    assert sent_back(items) == assistant("one two", called("run", "{}"), reasoning_content="late")


def test_a_call_that_goes_on_too_late_is_malformed() -> None:
    events = ResponsesTranslation().events(NOTES)
    for index in (0, 1):
        events.feed(chunk({"tool_calls": [{"index": index, **called("run", "", f"call_{index}")}]}))
    with pytest.raises(ModelReplyMalformed, match="goes on with a tool call"):
        events.feed(chunk({"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]}))


@pytest.mark.parametrize(
    "payload", [b"[]", b"{", b'{"choices": 3}', b'{"choices": [{"delta": {"tool_calls": [3]}}]}']
)
def test_an_event_that_is_none_is_malformed(payload: bytes) -> None:
    with pytest.raises(ModelReplyMalformed):
        ResponsesTranslation().events(NOTES).feed(payload)
