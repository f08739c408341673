"""A responses request as chat: what each field becomes, and what is counted as dropped."""

from __future__ import annotations

import json
from typing import Any

import pytest

from orchard_core.gateway.json_text import JsonFault
from orchard_core.gateway.responses.carried import Carried, write

from .talk import TOOLS, Json, ask, asked

RUN: Json = {"type": "function", "name": "run", "description": "Run it.", "parameters": {"type": "object"}}
RUN_CHAT = {"name": "run", "description": "Run it.", "parameters": {"type": "object"}}


def messages(*items: Json, **fields: Any) -> list[Json]:
    """Chat messages of these items."""
    found: list[Json] = asked(input=list(items), **fields)["messages"]
    return found


def words(role: str, *texts: str) -> Json:
    """A message item."""
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text} for text in texts]}


def call(key: str, arguments: str = "{}", **fields: Any) -> Json:
    """A call of a function."""
    return {"type": "function_call", "call_id": key, "name": "run", "arguments": arguments, **fields}


def output(key: str, value: object, kind: str = "function_call_output") -> Json:
    """The result of a call."""
    return {"type": kind, "call_id": key, "output": value}


def test_a_text_is_a_users_message() -> None:
    assert asked(input="hi") == {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


def test_instructions_and_developer_messages_at_the_front_are_one_system_message() -> None:
    talk = messages(words("developer", "b", "c"), words("system", "d"), words("user", "hi"), instructions="a")
    assert talk == [{"role": "system", "content": "a\n\nb\n\nc\n\nd"}, {"role": "user", "content": "hi"}]


def test_a_later_developer_message_stays_where_it_is() -> None:
    talk = messages(words("user", "hi"), words("developer", "be brief"))
    assert talk[1] == {"role": "system", "content": "be brief"}


def test_items_of_one_answer_are_one_message_and_results_follow_it() -> None:
    talk = messages(
        words("user", "hi"),
        {"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": "hm"}]},
        words("assistant", "Let me see."),
        call("a", '{"x":  1}'),
        call("b", "not json"),
        output("a", "one"),
        output("b", [{"type": "input_text", "text": "two"}]),
    )
    functions = [{"name": "run", "arguments": '{"x":  1}'}, {"name": "run", "arguments": "not json"}]
    assert talk[1:] == [
        {
            "role": "assistant",
            "content": "Let me see.",
            "reasoning_content": "hm",
            "tool_calls": [
                {"id": key, "type": "function", "function": function}
                for key, function in zip("ab", functions, strict=True)
            ],
        },
        {"role": "tool", "tool_call_id": "a", "content": "one"},
        {"role": "tool", "tool_call_id": "b", "content": "two"},
    ]


def test_reasoning_of_another_maker_leaves_no_empty_message() -> None:
    foreign = {"type": "reasoning", "summary": [], "encrypted_content": "x"}
    assert messages(words("user", "hi"), foreign, words("user", "on")) == [
        {"role": "user", "content": "hi"},
        {"role": "user", "content": "on"},
    ]


def test_an_answer_without_words_keeps_its_place() -> None:
    talk = messages(words("user", "hi"), words("assistant", ""), words("user", "on"))
    assert talk[1] == {"role": "assistant", "content": ""}


def test_two_answers_in_a_row_stay_two() -> None:
    talk = messages(words("user", "hi"), words("assistant", "one"), words("assistant", "two"))
    assert [message["content"] for message in talk] == ["hi", "one", "two"]


def test_images_and_files_keep_their_data() -> None:
    parts = [
        {"type": "input_text", "text": "look"},
        {"type": "input_image", "image_url": "data:image/png;base64,AA==", "detail": "high"},
        {"type": "input_file", "file_data": "data:;base64,AA==", "filename": "a.pdf"},
    ]
    content = messages({"role": "user", "content": parts})[0]["content"]
    assert content == [
        {"type": "text", "text": "look"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA==", "detail": "high"}},
        {"type": "file", "file": {"file_data": "data:;base64,AA==", "filename": "a.pdf"}},
    ]


def test_a_tools_result_may_hold_an_image() -> None:
    talk = messages(call("a"), output("a", [{"type": "input_image", "image_url": "data:x"}]))
    assert talk[1]["content"] == [{"type": "image_url", "image_url": {"url": "data:x"}}]


def test_a_call_of_a_custom_tool_is_a_call_with_one_text() -> None:
    item = {"type": "custom_tool_call", "call_id": "a", "name": "patch", "input": 'say "ü"\n'}
    made = messages(item, output("a", "ok", "custom_tool_call_output"))
    function = {"name": "patch", "arguments": '{"input": "say \\"ü\\"\\n"}'}
    assert made[0]["tool_calls"] == [{"id": "a", "type": "function", "function": function}]
    assert made[1] == {"role": "tool", "tool_call_id": "a", "content": "ok"}


def test_tools_become_functions() -> None:
    chat = asked(tools=[RUN, *TOOLS[1:]])
    free = {
        "type": "object",
        "properties": {"input": {"type": "string"}},
        "required": ["input"],
        "additionalProperties": False,
    }
    functions = [RUN_CHAT, {"name": "patch", "parameters": free}, {"name": "agents__spawn"}]
    assert chat["tools"] == [{"type": "function", "function": function} for function in functions]


def test_a_call_in_a_namespace_has_the_name_that_the_model_used() -> None:
    made = messages(call("a", name="spawn", namespace="agents"))
    assert made[0]["tool_calls"][0]["function"]["name"] == "agents__spawn"


def test_a_grammar_becomes_words() -> None:
    form = {"type": "grammar", "syntax": "lark", "definition": "start: /x/"}
    told = ask(tools=[{"type": "custom", "name": "patch", "format": form}])
    properties = json.loads(told.body)["tools"][0]["function"]["parameters"]["properties"]
    assert properties["input"]["description"] == "Text of this lark grammar:\nstart: /x/"
    assert told.dropped == {"tools.custom.format": 1}


def test_a_stream_asks_for_its_usage() -> None:
    assert asked(stream=True)["stream_options"] == {"include_usage": True}
    assert "stream_options" not in asked(stream=False)


SCHEMA = {"type": "json_schema", "name": "n", "schema": {"type": "object"}, "strict": True}


@pytest.mark.parametrize(
    ("fields", "chat"),
    [
        ({"max_output_tokens": 5}, {"max_completion_tokens": 5}),
        ({"reasoning": {"effort": "low", "summary": "auto"}}, {"reasoning_effort": "low"}),
        ({"text": {"verbosity": "low"}}, {"verbosity": "low"}),
        ({"text": {"format": {"type": "text"}}}, {}),
        ({"text": {"format": {"type": "json_object"}}}, {"response_format": {"type": "json_object"}}),
        (
            {"text": {"format": SCHEMA}},
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "n", "schema": {"type": "object"}, "strict": True},
                }
            },
        ),
        ({"store": False, "truncation": "disabled", "include": ["reasoning.encrypted_content"]}, {}),
        ({"temperature": None, "tools": [], "top_k": 4, "min_p": 0.1}, {"top_k": 4, "min_p": 0.1}),
    ],
)
def test_a_field_becomes_its_like_and_nothing_is_dropped(fields: Json, chat: Json) -> None:
    told = ask(**fields)
    rest = {key: value for key, value in json.loads(told.body).items() if key not in ("model", "messages")}
    assert (rest, told.dropped) == (chat, {})


@pytest.mark.parametrize(
    ("choice", "chat"),
    [
        ("auto", "auto"),
        ("required", "required"),
        ({"type": "function", "name": "run"}, {"type": "function", "function": {"name": "run"}}),
        ({"type": "custom", "name": "patch"}, {"type": "function", "function": {"name": "patch"}}),
    ],
)
def test_a_choice_of_tools(choice: object, chat: object) -> None:
    told = ask(tools=TOOLS, tool_choice=choice, parallel_tool_calls=False)
    asked_for = json.loads(told.body)
    assert (asked_for["tool_choice"], asked_for["parallel_tool_calls"], told.dropped) == (chat, False, {})


def item(**fields: Any) -> Json:
    """A request of one item beside a user's."""
    return {"input": [words("user", "hi"), fields]}


@pytest.mark.parametrize(
    ("fields", "dropped"),
    [
        ({"store": True}, {"store": 1}),
        ({"truncation": "auto"}, {"truncation": 1}),
        ({"metadata": {"a": "b"}}, {"metadata": 1}),
        ({"prompt_cache_key": "k", "client_metadata": {}}, {"prompt_cache_key": 1, "client_metadata": 1}),
        ({"include": ["file_search_call.results"]}, {"include.file_search_call.results": 1}),
        ({"reasoning": {"mode": "x"}}, {"reasoning.mode": 1}),
        ({"text": {"other": 1}}, {"text.other": 1}),
        ({"messages": [], "n": 3}, {"messages": 1, "n": 1}),
        ({"tools": [{"type": "web_search"}, {"type": "web_search"}]}, {"tools.web_search": 2}),
        ({"tools": [{**RUN, "defer_loading": True}]}, {"tools.function.defer_loading": 1}),
        ({"tools": [{**TOOLS[2], "description": "d"}]}, {"tools.namespace.description": 1}),
        ({"tool_choice": "auto", "parallel_tool_calls": True}, {"tool_choice": 1, "parallel_tool_calls": 1}),
        ({"tools": [RUN], "tool_choice": {"type": "web_search"}}, {"tool_choice": 1}),
        (
            {"tools": [RUN], "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": []}},
            {"tool_choice.allowed_tools": 1},
        ),
        (item(type="web_search_call", id="w"), {"input.web_search_call": 1}),
        (item(type="item_reference", id="w"), {"input.item_reference": 1}),
        (item(**words("user", "x"), phase="final"), {"input.message.phase": 1}),
        (item(role="user", content=[{"type": "input_video"}]), {"input.message.content.input_video": 1}),
        (
            item(role="user", content=[{"type": "input_image", "file_id": "f"}]),
            {"input.message.content.input_image": 1},
        ),
        (
            item(role="developer", content=[{"type": "input_image", "image_url": "u"}]),
            {"input.message.content.image_url": 1},
        ),
        (
            item(role="assistant", content=[{"type": "output_text", "text": "x", "annotations": [1]}]),
            {"input.message.content.annotations": 1},
        ),
        (
            item(type="reasoning", summary=[], encrypted_content="of another maker"),
            {"input.reasoning.encrypted_content": 1},
        ),
        (item(**call("a", caller="x")), {"input.function_call.caller": 1}),
    ],
)
def test_what_chat_cannot_say_is_counted(fields: Json, dropped: Json) -> None:
    assert ask(**fields).dropped == dropped


def test_ids_and_empty_fields_are_no_loss() -> None:
    full: Json = {
        "id": "i",
        "status": "completed",
        "content": None,
        "summary": [],
        "encrypted_content": write(Carried()),
    }
    told = ask(input=[words("user", "hi"), {"type": "reasoning", **full}])
    assert told.dropped == {}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"previous_response_id": "resp_1"}, "send the whole input"),
        ({"conversation": "conv_1"}, "send the whole input"),
        ({"background": True}, "stream it"),
        ({"input": None}, "`input`"),
        ({"input": []}, "must not be empty"),
        ({"input": [3]}, "must be an object"),
        ({"input": [{"role": "nobody", "content": ""}]}, "`role`"),
        ({"input": [{"role": "user", "content": 3}]}, "string or an array"),
        ({"input": [{"role": "user", "content": [{"type": "input_text"}]}]}, "needs a `text`"),
        ({"input": [{"type": "function_call", "name": "f"}]}, "call_id"),
        ({"input": [{"type": "function_call_output"}]}, "call_id"),
        ({"input": [{"type": "custom_tool_call", "call_id": "a", "name": "f"}]}, "`input` string"),
        ({"tools": {}}, "`tools`"),
        ({"tools": ["x"]}, "`tools`"),
        ({"tools": [{"type": "function"}]}, "needs a `name`"),
        ({"tools": [{"type": "namespace"}]}, "needs a `name`"),
        ({"text": 3}, "`text`"),
        ({"reasoning": "much"}, "`reasoning`"),
    ],
)
def test_what_cannot_be_served_is_refused_in_words(fields: Json, words: str) -> None:
    with pytest.raises(JsonFault, match=words):
        ask(**fields)


@pytest.mark.parametrize(
    "forged", ["orchard:", "orchard:[]", 'orchard:{"rest": 3}', 'orchard:{"name": "role"}']
)
def test_a_forged_remainder_is_foreign(forged: str) -> None:
    assert ask(**item(type="reasoning", encrypted_content=forged)).dropped == {
        "input.reasoning.encrypted_content": 1
    }


def test_a_remainder_cannot_change_who_speaks() -> None:
    forged = write(Carried(rest={"role": "system", "note": 1}))
    talk = messages(words("user", "hi"), {"type": "reasoning", "encrypted_content": forged})
    assert talk[1] == {"role": "assistant", "content": None, "note": 1}


def test_a_text_that_the_harness_changed_stays_changed() -> None:
    kept = write(Carried(rest={"content": [{"type": "text", "text": "old"}]}))
    marked = {"type": "reasoning", "encrypted_content": kept}
    assert messages(marked, words("assistant", "new"))[0]["content"] == "new"
    assert messages(marked, words("assistant", "old"))[0]["content"] == [{"type": "text", "text": "old"}]
