"""Malformed calls are answered with an error that helps, counted, and end the run when nothing else comes."""

from __future__ import annotations

from typing import Any

import pytest
from orchard_harness_react.schema import mismatch

from orchard_core import StopReason, ToolResult
from orchard_core.testing import FakeTool

from .conftest import Play
from .model_server import Said, calls, says

SUBMIT = calls(("submit", {}))
GOOD = calls(("bash", {"command": "true"}))


@pytest.mark.parametrize(
    ("name", "arguments", "help_"),
    [
        ("bash", '{"command": "ls', "not JSON"),
        ("bash", '{"command": "ls', "bash takes command (string), timeout_s (number, optional)"),
        ("bash", "[" * 100_000, "not JSON"),
        ("bash", '{"command": NaN}', "NaN is no JSON value"),
        ("bash", '{"n": ' + "9" * 5000 + "}", "not JSON"),
        ("bash", '["ls"]', "must be a JSON object"),
        ("bash", "{}", "`command` is missing"),
        ("bash", '{"command": 5}', "`command` must be a string, and is an integer"),
        ("bash", '{"command": "ls", "cwd": "/"}', "`cwd` is unknown (known: command, timeout_s)"),
        ("read_file", '{"path": "a", "first_line": 0}', "`first_line` is below its minimum of 1"),
        ("bash", '{"command": "echo \\ud800"}', "half of a surrogate pair"),
        ("execute_bash", '{"command": "ls"}', "Did you mean bash?"),
        ("Submit", "{}", "Did you mean submit?"),
        ("\ud800", "{}", "There is no tool"),
        ("xyzzy", "{}", "The tools are: bash, edit_file, read_file, submit, write_file."),
    ],
)
async def test_a_malformed_call_gets_an_answer_that_helps(
    play: Play, name: str, arguments: str, help_: str
) -> None:
    ran = await play(calls((name, arguments)), SUBMIT)
    assert help_ in ran.observation()
    assert (ran.result.stop, ran.result.malformed_calls) == (StopReason.SUBMITTED, 1)


async def test_a_call_that_is_no_function_call_is_answered(play: Play) -> None:
    odd: dict[str, Any] = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "x", "type": "custom"}],
    }
    ran = await play(Said(message=odd), SUBMIT)
    assert ran.observation() == "The call is not of a function."


async def test_arguments_that_a_server_has_parsed_already_are_taken(play: Play) -> None:
    function = {"name": "bash", "arguments": {"command": "echo parsed"}}
    parsed: dict[str, Any] = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "x", "type": "function", "function": function}],
    }
    ran = await play(Said(message=parsed), SUBMIT)
    assert ran.observation().startswith("parsed")
    assert ran.result.malformed_calls == 0


async def test_an_answer_without_a_call_is_told_what_to_do(play: Play) -> None:
    ran = await play(says("Let me think."), SUBMIT)
    assert ran.server.messages[-1]["role"] == "user"
    assert "called no tool" in ran.server.messages[-1]["content"]
    assert "call submit" in ran.server.messages[-1]["content"]
    assert ran.result.malformed_calls == 1


async def test_an_answer_that_was_cut_off_is_told_so(play: Play) -> None:
    ran = await play(says("And then I", finish="length"), SUBMIT, tools=("bash", "submit"))
    assert "cut off at its token limit" in ran.server.messages[-1]["content"]
    alone = await play(says("And then I", finish="length"), says("Done."), tools=("bash",))
    assert (alone.result.stop, alone.result.answer) == (StopReason.ANSWERED, "Done.")


async def test_three_malformed_answers_in_a_row_end_the_run(play: Play) -> None:
    ran = await play(calls(("bash", "{")), says("hm"), calls(("bsh", {})))
    assert (ran.result.stop, ran.result.malformed_calls, ran.result.turns) == (StopReason.MALFORMED, 3, 3)
    assert "There is no tool 'bsh'" in ran.result.message


async def test_a_good_call_between_starts_the_count_anew(play: Play) -> None:
    bad = calls(("bash", "{"))
    ran = await play(bad, bad, GOOD, bad, bad, GOOD, SUBMIT)
    assert (ran.result.stop, ran.result.malformed_calls) == (StopReason.SUBMITTED, 4)


async def test_several_bad_calls_of_one_answer_each_get_an_error_before_the_model_is_given_up(
    play: Play,
) -> None:
    ran = await play(calls(("a", {}), ("b", {}), ("c", {}), ("bash", {"command": "echo ok"})), SUBMIT)
    assert [ran.observation(place)[:16] for place in range(3)] == ["There is no tool"] * 3
    assert ran.observation(3) == "ok\n[exit code 0]"
    assert (ran.result.stop, ran.result.malformed_calls) == (StopReason.SUBMITTED, 3)


async def test_the_limit_can_be_set(play: Play) -> None:
    ran = await play(says("hm"), malformed_limit=1)
    assert ran.result.stop is StopReason.MALFORMED


async def test_an_error_of_a_tool_is_not_malformed(play: Play) -> None:
    broken = FakeTool("look", lambda _: ToolResult.text("no such thing", is_error=True))
    ran = await play(*[calls(("look", {}))] * 4, SUBMIT, brings=[broken])
    assert (ran.result.stop, ran.result.malformed_calls) == (StopReason.SUBMITTED, 0)


async def test_line_breaks_that_ought_to_be_escaped_are_taken_as_they_are_meant(play: Play) -> None:
    ran = await play(calls(("bash", '{"command": "echo a\n\techo b"}')), SUBMIT)
    assert ran.observation() == "a\nb\n[exit code 0]"


async def test_a_tool_may_take_no_arguments_and_the_model_give_none(play: Play) -> None:
    bare = FakeTool("look", lambda _: ToolResult.text("seen"), parameters={})
    ran = await play(calls(("look", "")), SUBMIT, brings=[bare])
    assert ran.observation() == "seen"


POINT: dict[str, Any] = {
    "$defs": {"Point": {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}},
    "type": "object",
    "properties": {
        "at": {"$ref": "#/$defs/Point"},
        "way": {"enum": ["up", "down"]},
        "many": {"type": "array", "items": {"type": "number"}, "maxItems": 2},
        "maybe": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "kind": {"const": "k"},
        "self": {"$ref": "#"},
    },
}


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (
            {
                "at": {"x": 1},
                "way": "up",
                "many": [1, 2.5],
                "maybe": None,
                "kind": "k",
                "self": {"way": "up"},
            },
            "",
        ),
        ({"at": {}}, "`at.x` is missing"),
        ({"at": {"x": True}}, "`at.x` must be an integer, and is a boolean"),
        ({"way": "left"}, "`way` must be one of 'up', 'down'"),
        ({"many": [1, "b"]}, "`many[1]` must be a number, and is a string"),
        ({"many": [1, 2, 3]}, "`many` is above its maxItems of 2"),
        (
            {"maybe": 3},
            "`maybe` must be a string, and is an integer or `maybe` must be null, and is an integer",
        ),
        ({"kind": "l"}, "`kind` must be 'k'"),
        ({"self": {"way": 1}}, "`self.way` must be one of 'up', 'down'"),
        ({"unknown": 1}, ""),
    ],
)
def test_a_schema_s_parts_are_checked_with_the_place(value: Any, problem: str) -> None:
    assert mismatch(value, POINT) == problem


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"$ref": "#/nowhere"},
        {"$ref": "http://x/y"},
        {"type": "odd"},
        {"properties": 3, "items": "x"},
    ],
)
def test_a_schema_that_is_none_refuses_nothing(schema: dict[str, Any]) -> None:
    assert mismatch({"a": [1]}, schema) == ""
