"""How each part of a messages request is said in chat."""

from __future__ import annotations

import json
from typing import Any

import pytest

from orchard_core.gateway.conversation import Conversation
from orchard_core.gateway.json_text import JsonFault
from orchard_core.gateway.messages.translation import MessagesTranslation

from .talk import Json, ask, asked

IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
DATA_URL = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}


def chat(*content: Json, role: str = "user", **fields: Any) -> list[Json]:
    """The chat messages that one message becomes."""
    messages: list[Json] = asked(messages=[{"role": role, "content": list(content)}], **fields)["messages"]
    return messages


def text(said: str, **fields: Any) -> Json:
    return {"type": "text", "text": said, **fields}


def result(call: str, content: object, **fields: Any) -> Json:
    return {"type": "tool_result", "tool_use_id": call, "content": content, **fields}


def test_system_is_the_first_message_whether_text_or_blocks() -> None:
    assert chat(text("x"), system="Be brief.")[0] == {"role": "system", "content": "Be brief."}
    blocks = [text("Be brief."), text("Be kind.", cache_control={"type": "ephemeral"})]
    assert chat(text("x"), system=blocks)[0] == {"role": "system", "content": "Be brief.\nBe kind."}


def test_the_block_that_tells_the_bill_is_not_the_model_s_to_see() -> None:
    """It differs from call to call: with it no prompt would begin as the one before."""
    billing = text("x-anthropic-billing-header: cc_version=2.1; cch=0a1b2")
    told = ask(system=[billing, text("Be brief.")])
    assert json.loads(told.body)["messages"][0] == {"role": "system", "content": "Be brief."}
    assert told.dropped == {"system.billing_header": 1}


def test_system_messages_amid_the_conversation_stay_where_they_are() -> None:
    told = asked(messages=[{"role": "user", "content": "a"}, {"role": "system", "content": [text("b")]}])
    assert told["messages"] == [{"role": "user", "content": "a"}, {"role": "system", "content": "b"}]


def test_text_alone_is_one_string() -> None:
    assert chat(text("a"), text("b")) == [{"role": "user", "content": "a\nb"}]


@pytest.mark.parametrize(
    ("source", "url"),
    [
        (IMAGE["source"], "data:image/png;base64,aGk="),
        ({"type": "url", "url": "https://x/y.png"}, "https://x/y.png"),
    ],
)
def test_images_are_parts(source: Json, url: str) -> None:
    (message,) = chat(text("see"), {"type": "image", "source": source})
    assert message["content"] == [text("see"), {"type": "image_url", "image_url": {"url": url}}]


def test_documents_are_text_or_files() -> None:
    pdf = {"type": "base64", "media_type": "application/pdf", "data": "aGk="}
    plain = {"type": "text", "media_type": "text/plain", "data": "words"}
    (message,) = chat(
        {"type": "document", "source": pdf, "title": "a.pdf"}, {"type": "document", "source": plain}
    )
    file = {"filename": "a.pdf", "file_data": "data:application/pdf;base64,aGk="}
    assert message["content"] == [{"type": "file", "file": file}, text("words")]


def test_results_of_tools_are_messages_of_their_own_before_what_the_user_says() -> None:
    told = chat(result("c1", "one"), result("c2", [text("two"), text("lines")]), text("go on"))
    assert told == [
        {"role": "tool", "tool_call_id": "c1", "content": "one"},
        {"role": "tool", "tool_call_id": "c2", "content": "two\nlines"},
        {"role": "user", "content": "go on"},
    ]


def test_results_stay_together_whatever_is_said_between_them() -> None:
    """Chat servers refuse a call whose result does not follow at once."""
    told = chat(result("c1", "one"), text("and"), result("c2", "two"), text("go"))
    assert [message["role"] for message in told] == ["tool", "tool", "user"]


def test_images_in_a_result_follow_as_the_user_s() -> None:
    tool, user = chat(result("c1", [text("seen"), IMAGE]))
    assert tool == {"role": "tool", "tool_call_id": "c1", "content": "seen"}
    assert user == {"role": "user", "content": [text("From the result of c1:"), DATA_URL]}


def test_a_failed_result_says_so() -> None:
    assert chat(result("c1", "no such file", is_error=True))[0]["content"] == "Error: no such file"
    assert chat(result("c1", "fine", is_error=False))[0]["content"] == "fine"
    assert chat({"type": "tool_result", "tool_use_id": "c1"})[0]["content"] == ""


def test_thinking_is_reasoning_in_the_field_it_came_in() -> None:
    def told(signature: str) -> Json:
        block = {"type": "thinking", "thinking": "hm", "signature": signature}
        return chat(block, text("yes"), role="assistant")[0]

    assert told("orchard:reasoning") == {"role": "assistant", "content": "yes", "reasoning": "hm"}
    assert told("EqoBCkgIARABGAI") == {"role": "assistant", "content": "yes", "reasoning_content": "hm"}
    assert ask(messages=[{"role": "assistant", "content": [text("x")]}]).dropped == {}


@pytest.mark.parametrize(
    ("choice", "told"),
    [
        ({"type": "auto"}, {"tool_choice": "auto"}),
        ({"type": "none"}, {"tool_choice": "none"}),
        ({"type": "any"}, {"tool_choice": "required"}),
        ({"type": "tool", "name": "run"}, {"tool_choice": {"type": "function", "function": {"name": "run"}}}),
        (
            {"type": "auto", "disable_parallel_tool_use": True},
            {"tool_choice": "auto", "parallel_tool_calls": False},
        ),
    ],
)
def test_tools_and_the_choice_among_them(choice: Json, told: Json) -> None:
    schema = {"type": "object", "properties": {"command": {"type": "string"}}}
    tools = [
        {
            "name": "run",
            "description": "Runs.",
            "input_schema": schema,
            "cache_control": {"type": "ephemeral"},
        },
        {"type": "web_search_20250305", "name": "web_search", "max_uses": 3},
        {"type": "custom", "name": "bare", "input_schema": {}},
    ]
    translated = ask(tools=tools, tool_choice=choice)
    body = json.loads(translated.body)
    run = {"name": "run", "description": "Runs.", "parameters": schema}
    bare = {"name": "bare", "parameters": {}}
    assert body["tools"] == [{"type": "function", "function": run}, {"type": "function", "function": bare}]
    assert {key: body[key] for key in ("tool_choice", "parallel_tool_calls") if key in body} == told
    assert translated.dropped == {"tools.cache_control": 1, "tools.web_search_20250305": 1}


def test_without_a_tool_that_is_left_nothing_is_said_of_tools() -> None:
    translated = ask(tools=[{"type": "bash_20250124", "name": "bash"}], tool_choice={"type": "auto"})
    assert json.loads(translated.body).keys() == {"model", "messages", "max_completion_tokens"}
    assert translated.dropped == {"tools.bash_20250124": 1, "tool_choice": 1}


def test_other_fields() -> None:
    schema = {"type": "object"}
    form = {"type": "json_schema", "schema": schema}
    translated = ask(
        temperature=0.5, top_p=0.9, top_k=3, stop_sequences=["END"], stream=True, seed=1, n=4,
        output_config={"effort": "low", "format": form},
        thinking={"type": "enabled", "budget_tokens": 1024}, metadata={"user_id": "u"},
    )  # fmt: skip
    body = json.loads(translated.body)
    del body["messages"]
    assert body == {
        "model": "m", "max_completion_tokens": 9, "temperature": 0.5, "top_p": 0.9, "top_k": 3,
        "stop": ["END"], "stream": True, "stream_options": {"include_usage": True}, "seed": 1,
        "reasoning_effort": "low",
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "answer", "schema": schema, "strict": True},
        },
    }  # fmt: skip
    assert translated.dropped == {"thinking": 1, "metadata": 1, "n": 1}


def test_blocks_that_chat_cannot_say_are_counted() -> None:
    blocks = [{"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}, text("so")]
    translated = ask(messages=[{"role": "assistant", "content": blocks}])
    assert json.loads(translated.body)["messages"] == [{"role": "assistant", "content": "so"}]
    assert translated.dropped == {"messages.content.server_tool_use": 1}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"messages": []}, "empty"),
        ({"messages": {}}, "array"),
        ({"messages": None}, "missing"),
        ({"messages": ["x"]}, "role"),
        ({"messages": [{"role": "user"}]}, "content"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "role 'tool'"),
        ({"messages": [{"role": "user", "content": 3}]}, "string or an array"),
        ({"messages": [{"role": "user", "content": ["x"]}]}, "no block"),
        ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "without `text`"),
        ({"messages": [{"role": "user", "content": [{"type": "tool_result"}]}]}, "tool_use_id"),
        ({"messages": [{"role": "assistant", "content": [{"type": "tool_use"}]}]}, "an `id` and a `name`"),
        ({"system": 3}, "system"),
        ({"tools": {}}, "array"),
        ({"tools": [3]}, "no tool"),
        ({"tools": [{"name": "x", "input_schema": {}}], "tool_choice": "auto"}, "tool_choice"),
        ({"output_config": []}, "output_config"),
    ],
)
def test_what_is_wrong_is_said(fields: Json, words: str) -> None:
    with pytest.raises(JsonFault, match=words):
        ask(**fields)


@pytest.mark.parametrize("depth", [100, 300, 900, 5000, 100_000])
def test_deep_nesting_is_read_or_refused_and_never_a_crash(depth: int) -> None:
    deep = b"[" * depth + b"]" * depth
    block = b'{"type":"tool_use","id":"c","name":"n","input":' + deep + b"}"
    body = b'{"model":"m","messages":[{"role":"assistant","content":[%b]}]}' % block
    if depth <= 300:
        assert (
            deep.decode()
            in json.loads(MessagesTranslation().request(body, Conversation()).body)["messages"][0][
                "tool_calls"
            ][0]["function"]["arguments"]
        )
        return
    with pytest.raises(JsonFault, match="deep"):
        MessagesTranslation().request(body, Conversation())
