"""The oracle plays a known solution through whatever shell-like tool the harness offers."""

from __future__ import annotations

from typing import Any

import pytest

from orchard_core import ModelRejected, Solution, SolutionStep
from orchard_core.gateway.scripted import OracleConfig, OracleModel

from .conversations import BASH, STRING, SUBMIT, TWO_STEPS, calls, context, play, request, say, tool

Json = dict[str, Any]
ARRAY = {"type": "array", "items": STRING}


async def test_it_plays_one_command_a_turn_with_a_thought_and_then_submits() -> None:
    answers = await play(OracleModel(), "You are an agent.", tools=[BASH, SUBMIT])
    assert [calls(answer) for answer in answers] == [
        [("bash", {"command": "mkdir out"})],
        [("bash", {"command": "echo 7 > out/n"})],
        [("submit", {"answer": "7"})],
    ]
    assert [answer["content"] for answer in answers[:2]] == ["The folder comes first.", "Now the number."]


@pytest.mark.parametrize(
    ("offered", "expected"),
    [
        (tool("execute_bash", ["command"], command=STRING, is_input=STRING), {"command": "true"}),
        (tool("exec_command", ["cmd"], cmd=STRING), {"cmd": "true"}),
        (tool("shell", ["command"], command=ARRAY), {"command": ["bash", "-lc", "true"]}),
        (tool("do_it", ["script"], script=STRING), {"script": "true"}),
        (
            tool("Bash", ["command", "description"], command=STRING, description=STRING),
            {"command": "true", "description": "Run a command"},
        ),
        (
            tool(
                "terminal",
                ["command", "risk"],
                command=STRING,
                risk={"type": "string", "enum": ["HIGH", "LOW"]},
            ),
            {"command": "true", "risk": "LOW"},
        ),
    ],
)
async def test_it_finds_the_shell_among_other_tools(
    offered: dict[str, Any], expected: dict[str, Any]
) -> None:
    tools = [
        tool("read_file", ["path"], path=STRING),
        tool("python", ["code"], code=STRING),
        tool("apply_patch", ["input"], input=STRING),
        tool("write_file", ["path", "content"], path=STRING, content=STRING),
        offered,
    ]
    model = OracleModel(OracleConfig(thoughts=False))
    solution = Solution(steps=(SolutionStep(command="true"),))
    message = await say(model, [{"role": "user", "content": "go"}], within=context(solution), tools=tools)
    assert calls(message) == [(offered["function"]["name"], expected)]


@pytest.mark.parametrize(
    ("finish", "expected"),
    [
        (tool("finish", ["message"], message=STRING), {"message": "7"}),
        (tool("task_done"), {}),
        (tool("submit_answer", ["value"], value=STRING), {"value": "7"}),
        (
            tool("complete", ["status"], status={"type": "string", "enum": ["failure", "success"]}),
            {"status": "success"},
        ),
    ],
)
async def test_it_ends_through_the_tool_that_is_meant_for_it(
    finish: dict[str, Any], expected: dict[str, Any]
) -> None:
    model = OracleModel()
    played = [
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": f"call_{n:06d}", "type": "function", "function": {"name": "bash", "arguments": "{}"}}
        ]}
        for n in range(2)
    ]  # fmt: skip
    message = await say(model, [{"role": "user", "content": "go"}, *played], tools=[BASH, finish])
    assert calls(message) == [(finish["function"]["name"], expected)]


async def test_without_a_finishing_tool_it_ends_in_words() -> None:
    answers = await play(OracleModel(), "You are an agent.", tools=[BASH])
    assert answers[-1] == {"role": "assistant", "content": "7"}


async def test_it_prints_the_sentinel_when_the_prompt_asks_for_one() -> None:
    prompt = "End with `echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT`."
    answers = await play(OracleModel(), prompt, tools=[BASH])
    command = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && printf '%s\\n' 7"
    assert calls(answers[-1]) == [("bash", {"command": command})]


async def test_it_writes_fenced_blocks_where_there_are_no_tools() -> None:
    prompt = "Answer with\n```mswea_bash_command\nls\n```\nand end with COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
    answers = await play(OracleModel(), prompt)
    assert answers[0]["content"] == "The folder comes first.\n\n```mswea_bash_command\nmkdir out\n```"
    assert "```mswea_bash_command\necho COMPLETE_TASK" in answers[2]["content"]


async def test_a_command_that_holds_a_fence_gets_a_longer_one() -> None:
    solution = Solution(steps=(SolutionStep(command="cat > a.md <<'E'\n```\nx\n```\nE"),))
    message = await say(
        OracleModel(), [{"role": "system", "content": "```bash\nls\n```"}], within=context(solution)
    )
    assert message["content"].count("````") == 2


async def test_it_writes_tagged_calls_where_the_prompt_lists_tools() -> None:
    prompt = (
        "<tools>\n"
        '{"name": "shell", "parameters": {"properties": {"cmd": {"type": "string"}}, "required": ["cmd"]}}\n'
        '{"name": "submit", "parameters": {"properties": {"answer": {"type": "string"}}}}\n</tools>'
    )
    answers = await play(OracleModel(), prompt)
    assert (
        '<tool_call>\n{"name": "shell", "arguments": {"cmd": "mkdir out"}}\n</tool_call>'
        in answers[0]["content"]
    )
    assert '{"name": "submit", "arguments": {"answer": "7"}}' in answers[-1]["content"]


async def test_a_side_call_without_tools_gets_words() -> None:
    message = await say(OracleModel(), [{"role": "user", "content": "Make a title for this talk."}])
    assert message == {"role": "assistant", "content": "7"}


async def test_the_same_request_gets_the_same_answer_whatever_came_between() -> None:
    upstream = OracleModel().upstream(context())
    first = request([{"role": "user", "content": "go"}], tools=[BASH, SUBMIT])
    before = await upstream.complete(first)
    await upstream.complete(request([{"role": "user", "content": "other"}], tools=[BASH]))
    assert await upstream.complete(first) == before


async def test_it_knows_its_place_when_the_beginning_was_cut_off() -> None:
    answers = await play(OracleModel(), "You are an agent.", tools=[BASH, SUBMIT])
    summary = {"role": "user", "content": "Summary: a folder was made."}
    message = await say(OracleModel(), [summary, answers[1]], tools=[BASH, SUBMIT])
    assert calls(message) == [("submit", {"answer": "7"})]


async def test_it_knows_its_place_when_the_harness_writes_its_calls_anew() -> None:
    answers = await play(OracleModel(), "You are an agent.", tools=[BASH, SUBMIT])
    function = {"name": "bash", "arguments": '{ "command":"mkdir out" }'}
    renamed = {**answers[0], "tool_calls": [{"id": "x", "type": "function", "function": function}]}
    message = await say(OracleModel(), [{"role": "user", "content": "go"}, renamed], tools=[BASH, SUBMIT])
    assert calls(message) == [("bash", {"command": "echo 7 > out/n"})]


async def test_a_command_that_would_change_a_living_shell_runs_in_one_of_its_own() -> None:
    solution = Solution(steps=(SolutionStep(command="cd out && ls"),))
    message = await say(
        OracleModel(), [{"role": "user", "content": "go"}], within=context(solution), tools=[BASH]
    )
    assert calls(message) == [("bash", {"command": "(\ncd out && ls\n)"})]


async def test_a_task_without_a_solution_is_refused_with_the_reason() -> None:
    with pytest.raises(ModelRejected, match="no known solution"):
        await say(OracleModel(), [{"role": "user", "content": "go"}], within=context(None), tools=[BASH])


async def test_it_is_free_and_says_how_much_it_read_and_wrote() -> None:
    model = OracleModel()
    reply = await model.upstream(context(TWO_STEPS)).complete(
        request([{"role": "user", "content": "x" * 400}], tools=[BASH])
    )
    assert model.price is not None
    assert reply.usage is not None
    assert reply.usage.input > 100
    assert reply.usage.output > 0
    assert model.price.cost(reply.usage) == 0.0
