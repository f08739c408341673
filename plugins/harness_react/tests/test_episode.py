"""The loop: calls run in order, results come back, and every way to stop has its own reason."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest
from orchard_harness_react.config import ReactConfig
from orchard_harness_react.harness import React
from pydantic import JsonValue

from orchard_core import (
    Harness,
    Limits,
    ModelRateLimited,
    ModelRejected,
    ModelReplyMalformed,
    ModelTimeout,
    ModelUnavailable,
    Sandbox,
    SandboxGone,
    SessionClosed,
    StopReason,
    Task,
    TaskInvalid,
    ToolResult,
)
from orchard_core.testing import FakeTool

from .conftest import REAL, Play
from .model_server import Said, calls, fails, model_server, says

SUBMIT = calls(("submit", {}))
KEY: Mapping[str, JsonValue] = {"type": "object", "properties": {"key": {"type": "string"}}}


def bash(command: str, **fields: object) -> Said:
    """An answer that runs one command."""
    return calls(("bash", {"command": command, **fields}))


def test_it_honours_the_contract() -> None:
    assert isinstance(React(), Harness)


@REAL
async def test_a_model_that_acts_and_submits_has_its_work_done_and_its_answer_kept(
    play: Play, sandbox: Sandbox
) -> None:
    ran = await play(bash("echo 42 > answer; cat answer"), calls(("submit", {"answer": "42"})))
    assert (ran.result.stop, ran.result.answer, ran.result.turns) == (StopReason.SUBMITTED, "42", 2)
    assert ran.observation() == "42\n[exit code 0]"
    assert await sandbox.read_bytes("/workspace/answer") == b"42\n"


async def test_the_instruction_is_told_word_for_word_after_the_system_prompt(play: Play) -> None:
    ran = await play(SUBMIT, instruction="  Tabs\there, é and {{ braces }}.\n")
    system, user = ran.server.messages
    assert system["role"] == "system"
    assert "/workspace" in system["content"]
    assert user == {"role": "user", "content": "  Tabs\there, é and {{ braces }}.\n"}


async def test_the_task_s_tools_are_offered_with_our_own(play: Play) -> None:
    tool = FakeTool("lookup", lambda args: ToolResult.text(f"found {args['key']}"), parameters=KEY)
    ran = await play(calls(("lookup", {"key": "x"})), SUBMIT, brings=[tool])
    offered = {entry["function"]["name"]: entry["function"] for entry in ran.server.requests[0]["tools"]}
    assert set(offered) == {"lookup", "bash", "read_file", "write_file", "edit_file", "submit"}
    assert offered["lookup"]["parameters"] == tool.parameters
    assert tool.calls == [{"key": "x"}]
    assert ran.observation() == "found x"


async def test_a_task_s_tool_takes_the_place_of_ours(play: Play) -> None:
    own = FakeTool("bash", lambda _: ToolResult.text("the task's"))
    ran = await play(bash("true"), SUBMIT, brings=[own])
    assert ran.observation() == "the task's"


async def test_several_calls_of_a_turn_run_in_order_and_each_gets_its_result(play: Play) -> None:
    answer = calls(
        ("bash", {"command": "echo a >> log; cat log"}),
        ("bash", {"command": "echo b >> log; cat log"}),
        ("read_file", {"path": "log"}),
    )
    ran = await play(answer, SUBMIT)
    assert [ran.observation(place) for place in range(3)] == [
        "a\n[exit code 0]",
        "a\nb\n[exit code 0]",
        "a\nb\n",
    ]
    assert [m["tool_call_id"] for m in ran.server.messages if m["role"] == "tool"] == ["c0", "c1", "c2"]
    assert ran.result.turns == 2


async def test_nothing_runs_after_the_call_that_ends_the_episode(play: Play, sandbox: Sandbox) -> None:
    ran = await play(calls(("submit", {"answer": "1"}), ("bash", {"command": "touch late"})))
    assert ran.result.stop is StopReason.SUBMITTED
    assert await sandbox.list("/workspace") == []


async def test_a_task_s_tool_may_end_the_episode(play: Play) -> None:
    done = FakeTool("declare", lambda _: ToolResult(ends=True, answer="won"))
    ran = await play(calls(("declare", {})), brings=[done])
    assert (ran.result.stop, ran.result.answer) == (StopReason.SUBMITTED, "won")


async def test_what_the_model_said_goes_back_exactly_and_the_conversation_only_grows(play: Play) -> None:
    arguments = '{ "command" :  "echo \\u00e9",\n "timeout_s": 5.0 }'
    first = calls(("bash", arguments), text="I think.")
    odd = {
        **first.message,
        "reasoning_content": "hm",
        "x_unknown": {"b": 1, "a": [1.5, None]},
        "refusal": None,
    }
    ran = await play(Said(message=odd, finish="tool_calls"), bash("true"), SUBMIT)
    assert ran.server.requests[1]["messages"][2] == odd
    assert list(ran.server.requests[1]["messages"][2]) == list(odd)
    for before, after in zip(ran.server.requests, ran.server.requests[1:], strict=False):
        assert after["messages"][: len(before["messages"])] == before["messages"]
        assert {**after, "messages": 0} == {**before, "messages": 0}


async def test_what_the_model_said_goes_back_character_by_character(play: Play) -> None:
    message = (
        '{ "content":"say \\"message\\": {}, \\u00e9 and é",\n\t"n" : 1.50e1, "role":"assistant",'
        '"tool_calls": [ {"id":"c", "function": {"name":"bash",'
        ' "arguments":"{ \\"command\\":\\"true\\" }"}} ] }'
    )
    body = '{"message": 3, "choices": [{"message" : ' + message + ', "finish_reason": "tool_calls"}]}'
    ran = await play(Said(body=body), SUBMIT)
    assert message.encode() in ran.server.raw[1]
    assert ran.observation() == "(no output)\n[exit code 0]"


async def test_the_session_s_key_and_the_sampling_options_travel_with_each_call(play: Play) -> None:
    ran = await play(SUBMIT, temperature=0.5, top_p=0.9, max_tokens=77, extra_body={"seed": 3})
    request = ran.server.requests[0]
    assert {name: request[name] for name in ("model", "temperature", "top_p", "max_tokens", "seed")} == {
        "model": "m", "temperature": 0.5, "top_p": 0.9, "max_tokens": 77, "seed": 3
    }  # fmt: skip
    assert ran.server.keys == ["Bearer key"]


async def test_without_options_the_server_s_own_defaults_hold(play: Play) -> None:
    ran = await play(SUBMIT)
    assert set(ran.server.requests[0]) == {"model", "messages", "tools"}


@pytest.mark.parametrize("name", ["messages", "model", "tools", "stream"])
def test_extra_fields_cannot_replace_what_the_harness_sets(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        ReactConfig(extra_body={name: 1})


async def test_the_turn_limit_ends_the_run(play: Play) -> None:
    ran = await play(bash("true"), bash("true"), limits=Limits(turns=2))
    assert (ran.result.stop, ran.result.turns) == (StopReason.TURN_LIMIT, 2)


async def test_a_submission_in_the_last_turn_counts(play: Play) -> None:
    ran = await play(bash("true"), SUBMIT, limits=Limits(turns=2))
    assert ran.result.stop is StopReason.SUBMITTED


async def test_a_spent_budget_of_tokens_ends_the_run(play: Play) -> None:
    spent = fails(429, "tokens: limit 100, used 120", "budget_exceeded")
    ran = await play(bash("true"), spent, limits=Limits(tokens=100))
    assert (ran.result.stop, ran.result.turns) == (StopReason.BUDGET, 1)
    assert "tokens" in ran.result.message


@REAL
async def test_a_command_that_outlasts_the_wall_clock_is_ended_with_the_run(play: Play) -> None:
    async with asyncio.timeout(50):  # the command itself would take longer
        ran = await play(bash("sleep 60"), limits=Limits(wall_clock_s=0.3))
    assert ran.result.stop is StopReason.BUDGET
    assert "wall clock" in ran.result.message


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("too long", "context_length_exceeded"),
        ("This model's maximum context length is 8192 tokens. However, you requested 9000", ""),
        ("prompt is too long: 210000 tokens > 200000 maximum", "invalid_request_error"),
    ],
)
async def test_a_conversation_that_no_longer_fits_ends_the_run(play: Play, message: str, code: str) -> None:
    ran = await play(bash("true"), fails(400, message, code))
    assert ran.result.stop is StopReason.CONTEXT_LIMIT


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (fails(500, "oops"), ModelUnavailable),
        (fails(429, "slow down"), ModelRateLimited),
        (fails(400, "temperature is wrong"), ModelRejected),
        (fails(401, "revoked", "session_closed"), SessionClosed),
        (fails(504, "late"), ModelTimeout),
        (Said(status=502, body="<html>bad gateway</html>"), ModelUnavailable),
        (Said(body="nonsense"), ModelReplyMalformed),
        (Said(body='{"choices": []}'), ModelReplyMalformed),
        (Said(body='{"choices": [{"message": "hi"}]}'), ModelReplyMalformed),
        (Said(body="[" * 100_000), ModelReplyMalformed),
    ],
)
async def test_an_error_of_the_model_passes_through_as_what_it_is(
    play: Play, answer: Said, error: type[Exception]
) -> None:
    with pytest.raises(error):
        await play(answer)


async def test_a_model_that_never_answers_is_given_up(play: Play) -> None:
    with pytest.raises(ModelTimeout, match=r"0\.2 s"):
        await play(Said(hangs=True), model_timeout_s=0.2)


async def test_a_model_that_is_not_there_is_unavailable(sandbox: Sandbox) -> None:
    async with model_server() as server:
        endpoint = server.endpoint
    task = Task(id="t", taskset="tests", instruction="Do it.")
    with pytest.raises(ModelUnavailable, match="cannot be reached"):
        await React().run(task, sandbox, endpoint, [], Limits())


@REAL
async def test_a_dead_sandbox_is_no_mistake_of_the_model(play: Play, sandbox: Sandbox) -> None:
    await sandbox.close()
    with pytest.raises(SandboxGone):
        await play(bash("true"))


async def test_a_task_s_tool_that_breaks_is_the_task_s_fault(play: Play) -> None:
    def broken(_: Mapping[str, JsonValue]) -> ToolResult:
        raise KeyError("nobody")

    with pytest.raises(TaskInvalid, match="lookup raised KeyError"):
        await play(calls(("lookup", {})), brings=[FakeTool("lookup", broken)])


async def test_without_submit_an_answer_in_words_is_the_final_one(play: Play) -> None:
    ran = await play(bash("true"), says("<think>hm</think> It is 42."), tools=("bash",))
    assert (ran.result.stop, ran.result.answer) == (StopReason.ANSWERED, "It is 42.")
    assert ran.result.malformed_calls == 0


async def test_only_the_own_tools_that_are_turned_on_are_offered(play: Play) -> None:
    ran = await play(SUBMIT, tools=("submit", "read_file"))
    assert [entry["function"]["name"] for entry in ran.server.requests[0]["tools"]] == ["submit", "read_file"]


async def test_a_harness_without_any_tool_sends_none(play: Play) -> None:
    ran = await play(says("42"), tools=())
    assert "tools" not in ran.server.requests[0]
    assert ran.result.answer == "42"


@REAL
async def test_a_cancelled_run_leaves_nothing_running(sandbox: Sandbox) -> None:
    task = Task(id="t", taskset="tests", instruction="Do it.")
    async with model_server(bash("touch begun; sleep 4711; touch ended")) as server:
        run = asyncio.create_task(React().run(task, sandbox, server.endpoint, [], Limits()))
        while not any(entry.name == "begun" for entry in await sandbox.list("/workspace")):
            await asyncio.sleep(0.02)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
    found = await sandbox.exec("ps -eo args 2>/dev/null || cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
    assert "sleep 4711" not in found.text


async def test_one_harness_serves_many_tasks_at_once(sandbox: Sandbox) -> None:
    harness = React()

    async def one(name: str) -> str | None:
        task = Task(id=name, taskset="tests", instruction="Do it.")
        async with model_server(bash(f"echo {name}"), calls(("submit", {"answer": name}))) as server:
            result = await harness.run(task, sandbox, server.endpoint, [], Limits())
            assert server.messages[-1]["content"] == f"{name}\n[exit code 0]"
        return result.answer

    assert await asyncio.gather(*(one(str(n)) for n in range(8))) == [str(n) for n in range(8)]


async def test_half_of_a_surrogate_pair_in_an_answer_goes_back_as_it_came(play: Play) -> None:
    ran = await play(says("odd \ud800 text"), SUBMIT)
    assert ran.server.messages[2]["content"] == "odd \ud800 text"


async def test_half_of_a_surrogate_pair_in_a_final_answer_does_not_kill_the_run(play: Play) -> None:
    ran = await play(says("so: \udc00"), tools=())
    assert ran.result.answer == "so: ?"
