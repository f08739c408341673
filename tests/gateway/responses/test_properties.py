"""What must hold of the translation whatever is said."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from .talk import Json, answered, answers, arguments, ask, asked, in_pieces, said, sent_back, streamed, texts

cuts = st.lists(st.integers(0, 20), max_size=4)


@given(answers())
def test_an_answer_sent_back_is_the_message_that_the_model_gave(message: Json) -> None:
    assert said(sent_back(answered(message)["output"])) == said(message)


@given(answers(), cuts)
def test_so_is_a_streamed_one(message: Json, places: list[int]) -> None:
    items = [
        event["item"] for event in streamed(in_pieces(message, places)) if event["type"].endswith("item.done")
    ]
    assert said(sent_back(items)) == said(message)


@given(answers())
def test_clients_may_leave_out_ids_and_add_empty_fields(message: Json) -> None:
    items = [
        {
            key: value
            for key, value in {**item, "content": item.get("content")}.items()
            if key not in ("id", "status")
        }
        for item in answered(message)["output"]
    ]
    assert said(sent_back(items)) == said(message)


@given(answers(), cuts)
def test_a_stream_ends_with_all_that_it_told(message: Json, places: list[int]) -> None:
    events = streamed(in_pieces(message, places))
    done = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    assert events[-1]["type"] == "response.completed"
    assert events[-1]["response"]["output"] == done
    assert [event["sequence_number"] for event in events] == list(range(len(events)))


@given(answers(), cuts)
def test_an_item_is_told_between_its_beginning_and_its_end(message: Json, places: list[int]) -> None:
    open_place = None
    for event in streamed(in_pieces(message, places)):
        if event["type"] == "response.output_item.added":
            assert open_place is None
            open_place = event["output_index"]
        elif "output_index" in event:
            assert event["output_index"] == open_place
            if event["type"] == "response.output_item.done":
                open_place = None
    assert open_place is None


@given(answers(), cuts)
def test_a_stream_says_what_the_whole_answer_says(message: Json, places: list[int]) -> None:
    whole = [_without_id(item) for item in answered(message)["output"]]
    last = streamed(in_pieces(message, places))[-1]["response"]["output"]
    assert json.dumps([_without_id(item) for item in _merged(last)]) == json.dumps(_merged(whole))


def _without_id(item: Json) -> Json:
    return {key: value for key, value in item.items() if key != "id"}


def _merged(items: list[Json]) -> list[Json]:
    """A refusal beside a text may be a part of one message or a message of its own."""
    merged: list[Json] = []
    for item in items:
        if merged and item["type"] == merged[-1]["type"] == "message":
            merged[-1] = {**merged[-1], "content": merged[-1]["content"] + item["content"]}
        elif not (item["type"] == "reasoning" and '"joins"' in item["encrypted_content"]):
            merged.append(item)
    return merged


# The declared subset: what both protocols can say is the same on both sides.

calls = st.lists(arguments, max_size=2)
turns = st.lists(st.tuples(texts, st.none() | texts.filter(bool), calls), max_size=4)


def chat_and_input(
    system: str | None, talk: list[tuple[str, str | None, list[str]]]
) -> tuple[list[Json], list[Json]]:
    """The same conversation in both protocols."""
    chat: list[Json] = [] if system is None else [{"role": "system", "content": system}]
    items: list[Json] = []
    for place, (question, text, made) in enumerate(talk):
        chat.append({"role": "user", "content": question})
        items.append({"type": "message", "role": "user", "content": question})
        if text is None and not made:
            continue
        message: Json = {"role": "assistant", "content": text}
        if text is not None:
            part = {"type": "output_text", "text": text, "annotations": []}
            items.append({"type": "message", "role": "assistant", "content": [part]})
        ids = [f"call_{place}_{number}" for number in range(len(made))]
        if made:
            message["tool_calls"] = [
                {"id": key, "type": "function", "function": {"name": "run", "arguments": text}}
                for key, text in zip(ids, made, strict=True)
            ]
        items += [
            {"type": "function_call", "call_id": key, "name": "run", "arguments": text}
            for key, text in zip(ids, made, strict=True)
        ]
        chat.append(message)
        chat += [{"role": "tool", "tool_call_id": key, "content": "out"} for key in ids]
        items += [{"type": "function_call_output", "call_id": key, "output": "out"} for key in ids]
    return chat, items


shared_fields: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {},
    optional={
        "temperature": st.floats(0, 2),
        "top_p": st.floats(0, 1),
        "user": texts,
        "service_tier": st.sampled_from(["auto", "flex"]),
        "seed": st.integers(),
        "top_k": st.integers(1, 50),
        "vendor": st.dictionaries(texts, st.none() | st.booleans(), max_size=2),
    },
)


@given(st.none() | texts, turns.filter(bool), shared_fields)
def test_the_shared_subset_is_the_same_on_both_sides(
    system: str | None, talk: list[tuple[str, str | None, list[str]]], fields: dict[str, Any]
) -> None:
    chat, items = chat_and_input(system, talk)
    told = ask(instructions=system, input=items, **fields)
    assert json.loads(told.body) == {"model": "m", "messages": chat, **fields}
    assert told.dropped == {}


@given(st.none() | texts, turns.filter(bool), answers(), answers())
def test_a_conversation_that_grows_at_its_end_does_so_in_chat(
    system: str | None, talk: list[tuple[str, str | None, list[str]]], first: Json, second: Json
) -> None:
    _, items = chat_and_input(system, [*talk, ("go on", None, [])])
    sent: list[Json] = []
    for message in (first, second):
        now = asked(instructions=system, input=items)["messages"]
        assert now[: len(sent)] == sent
        sent = now
        output = answered(message)["output"]
        results = [
            {"type": f"{item['type']}_output", "call_id": item["call_id"], "output": "ok"}
            for item in output
            if "call_id" in item
        ]
        items = [*items, *output, *results, {"role": "user", "content": "and now?"}]
    assert asked(instructions=system, input=items)["messages"][: len(sent)] == sent
