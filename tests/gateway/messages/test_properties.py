"""What must hold of the translation whatever is said. The declared subset is told in the reference."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from orchard_core.gateway.conversation import Conversation
from orchard_core.gateway.json_text import dumps

from .talk import (
    Json,
    answered,
    answers,
    arguments,
    ask,
    asked,
    gathered,
    in_pieces,
    sent_back,
    spoken,
    streamed,
    values,
)


def as_javascript(content: list[Json], *, reverse: bool) -> list[Json]:
    """What a client of another language sends back: spelled anew, keys in another order."""
    again: list[Json] = json.loads(json.dumps(content))
    for block in again:
        if block["type"] == "tool_use" and reverse:
            block["input"] = dict(reversed(block["input"].items()))
    return again


@given(answers(), st.booleans())
def test_an_answer_sent_back_is_the_message_that_the_model_gave(message: Json, reverse: bool) -> None:
    conversation = Conversation()
    spoken(conversation, message)
    content = answered(message)["content"]
    assert sent_back(conversation, as_javascript(content, reverse=reverse)) == message


@given(answers(), st.integers(1, 9))
def test_so_is_a_streamed_one(message: Json, size: int) -> None:
    conversation = Conversation()
    spoken(conversation, message)
    content = gathered(streamed(in_pieces(message, size)))["content"]
    assert sent_back(conversation, content) == message


@given(answers(), st.integers(1, 9))
def test_a_stream_says_what_the_whole_answer_says(message: Json, size: int) -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 5}
    streamed_one, whole = gathered(streamed(in_pieces(message, size))), answered(message, usage=usage)
    assert streamed_one.pop("id") != whole.pop("id"), "clients join answers of one id"
    assert streamed_one == whole


@given(answers(), st.integers(1, 9))
def test_a_stream_is_framed_as_the_reference_has_it(message: Json, size: int) -> None:
    """One beginning, one end, each block started before its pieces and stopped once, after them."""
    events = streamed(in_pieces(message, size))
    kinds = [event["type"] for event in events]
    assert (kinds[0], kinds[-2:]) == ("message_start", ["message_delta", "message_stop"])
    assert [kinds.count(kind) for kind in ("message_start", "message_delta", "message_stop")] == [1, 1, 1]
    opened: set[int] = set()
    stopped: set[int] = set()
    for event in events:
        match event["type"]:
            case "content_block_start":
                assert event["index"] == len(opened)
                opened.add(event["index"])
            case "content_block_delta":
                assert event["index"] in opened - stopped
            case "content_block_stop":
                assert event["index"] in opened - stopped
                stopped.add(event["index"])
    assert opened == stopped


@given(answers(), answers())
def test_two_answers_whose_calls_have_one_id_are_kept_apart(first: Json, second: Json) -> None:
    """Some servers count anew in each answer; calls that mean the same are told apart by their order."""
    for message in (first, second):
        for at, call in enumerate(message.get("tool_calls", ())):
            call["id"] = f"run:{at}"
            call["function"]["arguments"] = json.dumps({"same": 1}, indent=None if message is first else 2)
    conversation = Conversation()
    spoken(conversation, first)
    spoken(conversation, second)
    if bool(first.get("tool_calls")) and bool(second.get("tool_calls")):
        told = [{"role": "assistant", "content": answered(message)["content"]} for message in (first, second)]
        back = asked(conversation, messages=told)["messages"]
        assert [message["tool_calls"] for message in back] == [first["tool_calls"], second["tool_calls"]]


# The declared subset of requests: what both protocols can say is the same on both sides.

texts = st.text(min_size=1, max_size=8)
calls = st.lists(st.dictionaries(texts, values, max_size=2), max_size=2)
turns = st.lists(st.tuples(texts, st.none() | texts, calls), max_size=4)
fields = st.fixed_dictionaries(
    {},
    optional={
        "temperature": st.floats(0, 2),
        "top_p": st.floats(0, 1),
        "top_k": st.integers(1, 50),
        "seed": st.integers(0, 2**63),
        "vendor": st.dictionaries(texts, st.none() | st.booleans(), max_size=2),
    },
)
Talk = list[tuple[str, str | None, list[Json]]]


def in_both(system: str | None, talk: Talk, *, blocks: bool) -> tuple[list[Json], list[Json]]:
    """The same conversation in chat and in messages, the latter's texts as strings or as blocks."""
    chat: list[Json] = [] if system is None else [{"role": "system", "content": system}]
    told: list[Json] = []

    def said(text: str) -> object:
        return [{"type": "text", "text": text}] if blocks else text

    for place, (question, text, made) in enumerate(talk):
        chat.append({"role": "user", "content": question})
        told.append({"role": "user", "content": said(question)})
        if text is None and not made:
            continue
        ids = [f"before_{place}_{number}" for number in range(len(made))]
        answer: Json = {"role": "assistant", "content": text}
        content: list[Json] = [] if text is None else [{"type": "text", "text": text}]
        if made:
            answer["tool_calls"] = [
                {"id": key, "type": "function", "function": {"name": "run", "arguments": _compact(given)}}
                for key, given in zip(ids, made, strict=True)
            ]
            content += [
                {"type": "tool_use", "id": key, "name": "run", "input": given}
                for key, given in zip(ids, made, strict=True)
            ]
        chat += [answer, *({"role": "tool", "tool_call_id": key, "content": "out"} for key in ids)]
        told.append({"role": "assistant", "content": content})
        if ids:
            results = [{"type": "tool_result", "tool_use_id": key, "content": said("out")} for key in ids]
            told.append({"role": "user", "content": results})
    return chat, told


def _compact(value: object) -> str:
    return dumps(value).decode()


@given(st.none() | texts, turns.filter(bool), fields, st.booleans())
def test_the_declared_subset_is_the_same_on_both_sides(
    system: str | None, talk: Talk, more: dict[str, Any], blocks: bool
) -> None:
    chat, told = in_both(system, talk, blocks=blocks)
    lead: Json = (
        {} if system is None else {"system": [{"type": "text", "text": system}] if blocks else system}
    )
    translated = ask(messages=told, **lead, **more)
    assert json.loads(translated.body) == {
        "model": "m", "messages": chat, "max_completion_tokens": 9, **more,
    }  # fmt: skip
    assert translated.dropped == {}


@given(st.none() | texts, turns, st.lists(answers(), min_size=1, max_size=3), st.lists(texts, min_size=3))
def test_a_conversation_that_grows_at_its_end_does_so_in_chat(
    system: str | None, talk: Talk, given_answers: list[Json], words: list[str]
) -> None:
    """So that the next prompt holds the last one and the model's own words, and samples append."""
    conversation = Conversation()
    _, told = in_both(system, [*talk, ("go on", None, [])], blocks=True)
    lead: Json = {} if system is None else {"system": system}
    for message, word in zip(given_answers, words, strict=False):
        before = asked(conversation, messages=told, **lead)["messages"]
        spoken(conversation, message)
        content = answered(message)["content"]
        results = [
            {"type": "tool_result", "tool_use_id": block["id"], "content": word}
            for block in content
            if block["type"] == "tool_use"
        ]
        told = [
            *told,
            {"role": "assistant", "content": content},
            {"role": "user", "content": results or word},
        ]
        after = asked(conversation, messages=told, **lead)["messages"]
        assert after[: len(before)] == before
        assert after[len(before)] == message


@given(arguments(), arguments())
def test_arguments_that_a_harness_changed_are_taken_as_it_sends_them(first: str, second: str) -> None:
    """The exact text is the model's; what the harness made of it is the harness's."""
    conversation = Conversation()
    call = {"id": "c1", "type": "function", "function": {"name": "run", "arguments": first}}
    spoken(conversation, {"role": "assistant", "content": None, "tool_calls": [call]})
    changed = {"edited": second}
    block = {"type": "tool_use", "id": "c1", "name": "run", "input": changed}
    told = sent_back(conversation, [block])["tool_calls"][0]["function"]["arguments"]
    assert told == first or json.loads(told) == changed


KNOWN_ONLY_HERE = ("metadata", "service_tier", "container", "thinking", "context_management", "mcp_servers")


@given(st.sets(st.sampled_from(KNOWN_ONLY_HERE)), st.integers(0, 4), st.integers(0, 4))
def test_each_field_that_is_dropped_is_counted(names: set[str], cached: int, tools: int) -> None:
    block = {"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}
    content = [block] * cached + [{"type": "text", "text": "y"}]
    offered = [{"type": "web_search_20250305", "name": f"search{at}"} for at in range(tools)]
    own: Json = {name: {"x": 1} for name in names}
    told = ask(messages=[{"role": "user", "content": content}], tools=offered, **own)
    expected = dict.fromkeys(names, 1)
    expected |= {"messages.content.cache_control": cached} if cached else {}
    expected |= {"tools.web_search_20250305": tools} if tools else {}
    assert told.dropped == expected
    assert json.loads(told.body)["messages"] == [{"role": "user", "content": "\n".join("x" * cached + "y")}]


def test_calls_of_one_id_are_told_apart_even_where_their_arguments_are_no_object() -> None:
    """All three look like an empty object to a harness; an answer that comes later changes none before it."""
    conversation = Conversation()
    told: list[Json] = []
    for given_arguments in ("{", "", "{ }"):
        function = {"name": "run", "arguments": given_arguments}
        message = {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c", "type": "function", "function": function}],
        }
        spoken(conversation, message)
        told.append({"role": "assistant", "content": answered(message)["content"]})
        back = asked(conversation, messages=told)["messages"]
        kept = [each["tool_calls"][0]["function"]["arguments"] for each in back]
        assert kept == ["{", "", "{ }"][: len(told)]
