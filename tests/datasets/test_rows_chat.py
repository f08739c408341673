"""Conversations of every dialect as chat messages: what was sampled, word for word."""

from __future__ import annotations

import json

import pytest

from orchard_core import Dialect, Usage, rollout_rows
from tests.gateway.shapes import tool

from .making import Json, Recorded, rollout_of, said


def test_what_was_sampled_stands_in_the_row_and_not_what_the_harness_made_of_it() -> None:
    begin = [{"role": "user", "content": "Go."}]
    exact = '{"role":"assistant","content":null,"reasoning_content":"hm","tool_calls":[' + call_of(
        '{ \\"n\\": 1.0,\\t\\"a\\":\\"\\u00fc\\" }'
    )
    echo: Json = {"role": "assistant", "content": "", "tool_calls": json.loads(exact + "]}")["tool_calls"]}
    talk = Recorded()
    talk.call(begin, exact + "]}")
    talk.call([*begin, echo, tool("c1", "ok")], {"role": "assistant", "content": "Done."})
    (row,) = rollout_rows(talk.rollout())
    spoken = said(row)[1]
    assert spoken["reasoning_content"] == "hm"
    assert spoken["tool_calls"][0]["function"]["arguments"] == '{ "n": 1.0,\t"a":"ü" }'


def call_of(arguments: str) -> str:
    return f'{{"id":"c1","type":"function","function":{{"name":"run","arguments":"{arguments}"}}}}'


def test_a_servers_own_fields_are_left_out_and_reasoning_has_one_name() -> None:
    talk = Recorded()
    talk.call(
        [{"role": "user", "content": "Go.", "cache_control": {"type": "ephemeral"}}],
        {
            "role": "assistant",
            "content": "x",
            "reasoning": "hm",
            "annotations": [],
            "refusal": None,
            "audio": None,
        },
    )
    (row,) = rollout_rows(talk.rollout())
    assert said(row) == [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": "x", "reasoning_content": "hm"},
    ]


PIXEL = "iVBORw0KGgo="


def test_a_conversation_in_the_messages_dialect_becomes_chat() -> None:
    talk = Recorded(
        Dialect.MESSAGES,
        tools=json.dumps([{"name": "run", "description": "Runs.", "input_schema": {"type": "object"}}]),
    )
    begin: list[Json] = [
        {"role": "system", "content": [{"type": "text", "text": "Act."}]},
        {"role": "user", "content": "Go."},
    ]
    exact = (
        '{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},'
        '{"type":"text","text":"So."},{"type":"tool_use","id":"t1","name":"run","input":{ "n": 1.0 }}]}'
    )
    result = {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "t1", "content": [
                {"type": "text", "text": "seen"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}},
            ]},
        ],
    }  # fmt: skip
    echo = json.loads(exact)
    talk.call(begin, exact)
    talk.call(
        [*begin, echo, result],
        {"role": "assistant", "content": [{"type": "text", "text": "Done."}]},
        usage=Usage(input=5, cache_read=30, cache_write=2, output=3),
    )
    (row,) = rollout_rows(talk.rollout())
    assert said(row) == [
        {"role": "system", "content": "Act."},
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": "So.", "reasoning_content": "hm", "tool_calls": [
            {"id": "t1", "type": "function", "function": {"name": "run", "arguments": '{ "n": 1.0 }'}},
        ]},
        {"role": "tool", "content": "seen", "tool_call_id": "t1"},
        {"role": "user", "content": [
            {"type": "text", "text": "From the result of t1:"},
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}},
        ]},
        {"role": "assistant", "content": "Done."},
    ]  # fmt: skip
    assert row.mask == (0, 0, 1, 0, 0, 1)
    assert (row.token_count, row.token_count_exact) == (40, True)
    (offered,) = json.loads(row.tools)
    assert offered["function"] == {"name": "run", "description": "Runs.", "parameters": {"type": "object"}}


def test_a_conversation_in_the_responses_dialect_becomes_chat() -> None:
    talk = Recorded(
        Dialect.RESPONSES,
        tools=json.dumps([{"type": "function", "name": "run", "parameters": {"type": "object"}}]),
    )
    begin: list[Json] = [
        {"role": "system", "content": "Act."},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Go."}]},
    ]
    items: list[Json] = [
        {"type": "reasoning", "id": "r1", "summary": [{"type": "summary_text", "text": "hm"}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "So."}]},
        {"type": "function_call", "call_id": "c1", "name": "run", "arguments": '{ "n": 1.0 }'},
    ]
    result = {"type": "function_call_output", "call_id": "c1", "output": "seen"}
    end = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]}
    talk.call(begin, {"role": "assistant", "output": items})
    talk.call([*begin, *items, result], {"role": "assistant", "output": [end]})
    (row,) = rollout_rows(talk.rollout())
    assert said(row) == [
        {"role": "system", "content": "Act."},
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": "So.", "reasoning_content": "hm", "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "run", "arguments": '{ "n": 1.0 }'}},
        ]},
        {"role": "tool", "content": "seen", "tool_call_id": "c1"},
        {"role": "assistant", "content": "Done."},
    ]  # fmt: skip
    assert (row.mask, row.turns) == ((0, 0, 1, 0, 1), 2)
    assert json.loads(row.tools)[0]["function"]["name"] == "run"


def test_one_answer_of_several_messages_is_one_message_of_the_row() -> None:
    talk = Recorded(Dialect.RESPONSES)
    items = [
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
        for text in ("First.", "Second.")
    ]
    talk.call([{"role": "user", "content": "Go."}], {"role": "assistant", "output": items})
    (row,) = rollout_rows(talk.rollout())
    assert (said(row)[-1]["content"], row.mask) == ("First.\n\nSecond.", (0, 1))


@pytest.mark.parametrize("wire", [Dialect.MESSAGES, Dialect.RESPONSES])
def test_a_message_of_a_shape_that_only_its_server_knows_is_kept_as_text(wire: Dialect) -> None:
    odd: Json = {"role": "oracle", "content": 7, "type": "message"}
    talk = Recorded(wire)
    talk.call([odd], {"role": "assistant", "content": "x"})
    (row,) = rollout_rows(talk.rollout())
    assert json.loads(said(row)[0]["content"]) == odd
    assert row.mask == (0, 1)


def test_a_lone_surrogate_survives_in_the_rows_json() -> None:
    talk = Recorded()
    talk.call(['{"role":"user","content":"\\ud800x"}'], {"role": "assistant", "content": "ü"})
    (row,) = rollout_rows(talk.rollout())
    row.messages.encode()
    assert said(row)[0]["content"] == "\ud800x"


def test_examples_in_the_prompt_are_no_answers() -> None:
    talk = Recorded()
    shown = [{"role": "user", "content": "1+1"}, {"role": "assistant", "content": "2"}]
    talk.call([*shown, {"role": "user", "content": "2+2"}], {"role": "assistant", "content": "4"})
    (row,) = rollout_rows(talk.rollout())
    assert (row.mask, row.turns) == ((0, 0, 0, 1), 2)


def test_tools_that_only_earlier_calls_were_shown_are_in_the_row_too() -> None:
    talk = Recorded(tools='[{"type":"function","function":{"name":"ls"}}]')
    begin = [{"role": "user", "content": "Go."}]
    talk.call(begin, {"role": "assistant", "content": "x"})
    talk.call([*begin, {"role": "assistant", "content": "x"}, {"role": "user", "content": "On."}], {
        "role": "assistant", "content": "y",
    })  # fmt: skip
    rollout = talk.rollout()
    last = rollout.trajectory.calls[1].model_copy(update={"tools": "later"})
    blobs = {**rollout.trajectory.blobs, "later": '[{"type":"function","function":{"name":"cat"}}]'}
    changed = rollout.trajectory.model_copy(
        update={"calls": (rollout.trajectory.calls[0], last), "blobs": blobs}
    )
    (row,) = rollout_rows(rollout_of(changed))
    assert [tool["function"]["name"] for tool in json.loads(row.tools)] == ["cat", "ls"]
