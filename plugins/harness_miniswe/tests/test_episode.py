"""What happens in a run."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import pytest
import yaml
from minisweagent.config import builtin_config_dir
from orchard_harness_miniswe.harness import Miniswe
from orchard_harness_miniswe.settings import MinisweConfig
from orchard_harness_miniswe.trajectory import read_trajectory

from orchard_core import (
    ConfigError,
    Gateway,
    Limits,
    ModelReplyMalformed,
    ModelUnavailable,
    RecordCorrupt,
    Sandbox,
    SessionContext,
    StopReason,
    Task,
    load_harness,
)
from orchard_core.testing import FakeModel, FakeReply

from .conftest import REAL, Play, bash, submit

CONFIGS = sorted(
    str(file.relative_to(builtin_config_dir))
    for file in builtin_config_dir.rglob("*.yaml")
    if {"agent", "model"} <= set(yaml.safe_load(file.read_text()) or ())
)
TASK = Task(id="t", taskset="tests", instruction="Do it.")


@REAL
async def test_a_command_that_outlasts_the_config_s_limit_is_told_as_the_stock_agent_tells_it(
    play: Play,
) -> None:
    slow = bash("echo begun; sleep 60; echo ended")
    ran = await play(slow, submit(), overrides={"environment": {"timeout": 1}})
    told = json.loads(ran.observations[0])
    assert told["returncode"] == -1
    assert told["output"] == "begun\n"
    assert told["exception_info"] == (
        "An error occurred while executing the command: Command 'echo begun; sleep 60; echo ended' "
        "timed out after 1 seconds"
    )


@REAL
async def test_a_working_directory_that_the_agent_removed_is_told_and_the_run_goes_on(
    play: Play, sandbox: Sandbox
) -> None:
    await sandbox.mkdir("/workspace/sub")
    where = {"environment": {"cwd": "/workspace/sub"}}
    ran = await play(bash("cd ..; rmdir sub"), bash("true"), overrides=where, limits=Limits(turns=2))
    told = json.loads(ran.observations[1])["exception_info"]
    assert told.endswith("[Errno 2] No such file or directory: '/workspace/sub'")
    assert ran.result.stop is StopReason.TURN_LIMIT


async def test_the_config_s_directory_holds_where_the_sandbox_has_it(play: Play, sandbox: Sandbox) -> None:
    await sandbox.mkdir("/workspace/sub")
    where = {"environment": {"cwd": "/workspace/sub"}}
    ran = await play(bash("touch here"), submit(), overrides=where)
    assert [entry.name for entry in await sandbox.list("/workspace/sub")] == ["here"]
    ran = await play(bash("ls"), submit(), overrides={"environment": {"cwd": "/no/such/place"}})
    assert json.loads(ran.observations[0])["output"] == "sub\n"


async def test_options_of_the_config_s_model_are_sent_and_litellm_s_own_are_not(play: Play) -> None:
    kwargs = {"temperature": 0.5, "drop_params": True, "api_base": "http://elsewhere", "stream": True}
    ran = await play(submit(), overrides={"model": {"model_kwargs": kwargs}})
    assert json.loads(ran.recorded.calls[0].params) == {"model": "fake", "temperature": 0.5}


@pytest.mark.parametrize(("config", "limits"), [(2, Limits()), (9, Limits(turns=2)), (2, Limits(turns=9))])
async def test_the_lower_of_the_two_limits_of_steps_holds(play: Play, config: int, limits: Limits) -> None:
    replies = [bash("true")] * 5
    ran = await play(*replies, limits=limits, overrides={"agent": {"step_limit": config}})
    assert (ran.result.stop, ran.result.turns, len(ran.recorded.calls)) == (StopReason.TURN_LIMIT, 2, 2)
    assert ran.written.info.exit_status == "LimitsExceeded"


async def test_a_cost_that_the_server_tells_counts_toward_the_config_s_limit(play: Play) -> None:
    choice = {"index": 0, "message": bash("true").message(), "finish_reason": "tool_calls"}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2, "cost": 2.0}
    dear = FakeReply(body=json.dumps({"choices": [choice], "usage": usage}).encode())
    ran = await play(dear, dear, dear, overrides={"agent": {"cost_limit": 3.0}})
    assert (ran.result.stop, ran.result.turns) == (StopReason.BUDGET, 2)
    assert ran.written.info.model_stats["instance_cost"] == 4.0


async def test_a_budget_that_the_gateway_holds_ends_the_run(play: Play) -> None:
    ran = await play(bash("true"), bash("true"), session_limits=Limits(calls=1))
    assert (ran.result.stop, ran.result.turns) == (StopReason.BUDGET, 1)
    assert "calls" in ran.result.message


async def test_answers_that_cannot_be_understood_are_counted_and_too_many_end_the_run(play: Play) -> None:
    ran = await play(FakeReply(text="hm"), bash("true"), *[FakeReply.call("python", code="1")] * 3)
    assert (ran.result.stop, ran.result.turns, ran.result.malformed_calls) == (StopReason.MALFORMED, 5, 4)
    assert ran.written.info.exit_status == "RepeatedFormatError"


async def test_an_answer_without_a_shape_is_the_model_s_fault(play: Play) -> None:
    broken = {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "function": None}]}
    body = json.dumps({"choices": [{"index": 0, "message": broken, "finish_reason": "stop"}]}).encode()
    with pytest.raises(ModelReplyMalformed):
        await play(FakeReply(body=body))


async def test_a_model_that_is_down_passes_through(play: Play) -> None:
    with pytest.raises(ModelUnavailable):
        await play(*[FakeReply(error=ModelUnavailable("down"))] * 9)


async def test_a_template_that_asks_for_this_machine_s_environment_is_refused(play: Play) -> None:
    with pytest.raises(Exception, match="'HOME' is undefined"):
        await play(submit(), overrides={"agent": {"system_template": "{{ HOME }}"}})


async def test_templates_see_the_sandbox_s_own_system(play: Play) -> None:
    said = "{{ system }} {{ machine }} {{ cwd }} {{ task }} {{ n_model_calls }}"
    ran = await play(submit(), overrides={"agent": {"system_template": said}})
    system, machine, *rest = str(ran.written.messages[0].content).split(" ", 3)
    assert (system, rest) == ("Linux", ["/workspace", "Do it. 0"])
    assert machine


@pytest.mark.parametrize("sandbox", ["local"], indirect=True)  # one config sources the home's .bashrc
@pytest.mark.parametrize("config", CONFIGS)
async def test_every_config_it_ships_is_usable_as_it_is(play: Play, config: str) -> None:
    model = yaml.safe_load((builtin_config_dir / config).read_text())["model"]
    text = "textbased" in config or "backticks" in config or config == "default.yaml"
    done = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && echo 42"
    written = f"```mswea_bash_command\n{done}\n```"
    if "action_regex" in model and "```" not in model["action_regex"]:
        written, text = f"<mswea_bash_command>\n{done}\n</mswea_bash_command>", True
    ran = await play(FakeReply(text=written) if text else bash(done), config_file=config)
    assert (ran.result.stop, ran.result.answer) == (StopReason.SUBMITTED, "42\n")
    assert ran.written.info.exit_status == "Submitted"


def test_a_config_that_is_not_there_is_named() -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.yaml"):
        load_harness("miniswe:nowhere.yaml")


def test_an_agent_class_that_does_not_exist_is_named() -> None:
    with pytest.raises(ConfigError, match="no_such"):
        Miniswe(MinisweConfig(overrides={"agent": {"agent_class": "no_such.Agent"}}))


async def test_an_agent_of_one_s_own_is_driven(
    play: Play, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = "from minisweagent.agents.default import DefaultAgent\nclass Mine(DefaultAgent):\n    pass\n"
    (tmp_path / "own_agent_of_a_user.py").write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path))
    ran = await play(submit("7"), overrides={"agent": {"agent_class": "own_agent_of_a_user.Mine"}})
    config: Any = dict(ran.written.info)["config"]
    assert (ran.result.answer, config["agent_type"]) == ("7", "own_agent_of_a_user.Mine")


@REAL
async def test_a_cancelled_run_leaves_no_thread_and_no_command(sandbox: Sandbox) -> None:
    async with Gateway() as gateway:
        session = await gateway.open_session(
            FakeModel([bash("touch begun; sleep 4711; touch ended")]), SessionContext(task=TASK)
        )
        before = set(threading.enumerate())
        run = asyncio.create_task(Miniswe().run(TASK, sandbox, session.endpoint, [], Limits()))
        while not any(entry.name == "begun" for entry in await sandbox.list("/workspace")):
            await asyncio.sleep(0.02)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        left = {thread for thread in threading.enumerate() if thread.name == "harness"}
        assert left <= before
        await session.close()
    found = await sandbox.exec("ps -eo args 2>/dev/null || cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
    assert "sleep 4711" not in found.text


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"trajectory_format": "mini-swe-agent-9"}', b"\xff"])
def test_what_is_no_trajectory_is_refused(data: bytes) -> None:
    with pytest.raises(RecordCorrupt, match="no trajectory of mini-swe-agent"):
        read_trajectory(data)
