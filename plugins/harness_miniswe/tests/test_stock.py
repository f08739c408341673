"""Beside a run of the stock package (its own agent, litellm, local environment): what is sent is the same."""

from __future__ import annotations

import asyncio
import difflib
import json
import sys
from pathlib import Path

import pytest
from orchard_harness_miniswe.harness import Miniswe
from orchard_harness_miniswe.settings import MinisweConfig
from orchard_harness_miniswe.trajectory import read_trajectory

from orchard_core import Gateway, Limits, Sandbox, SessionContext, Task, Trajectory
from orchard_core.gateway.expand import conversations
from orchard_core.testing import FakeModel, FakeReply

from .conftest import REAL, bash, submit

pytestmark = pytest.mark.slow  # litellm takes many seconds to import

TASK = "Tabs\there, é and {{ braces }}."
TOOLS = [
    bash("printf 'one\\n'; printf 'two\\n' >&2; printf three"),
    bash("exit 3", "cat not-there"),
    bash("printf 'a\\r\\nb\\rc\\377'"),
    bash("seq 1 5000"),
    FakeReply(text="I forgot to call anything."),
    FakeReply.call("python", code="1"),
    bash("printf '%s' \"$PAGER $TQDM_DISABLE\"; echo '"),
    bash("echo \0; true"),
    bash("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; false"),
    FakeReply(text="cut off", finish="length"),
    submit("\\npatch\\n"),
]
TEXT = [
    FakeReply(text="THOUGHT: look\n\n```mswea_bash_command\necho hi; echo é >&2\n```"),
    FakeReply(text="```mswea_bash_command\na\n```\n```mswea_bash_command\nb\n```"),
    FakeReply(text="```mswea_bash_command\necho COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; echo 42\n```"),
]


async def run_stock(replies: list[FakeReply], config: str, place: Path) -> tuple[Trajectory, bytes]:
    """What the gateway recorded of a stock run, and the file that the run left."""
    async with Gateway() as gateway:
        session = await gateway.open_session(FakeModel(replies), SessionContext())
        url, key = session.endpoint.base_url, session.endpoint.api_key
        command = [
            sys.executable, str(Path(__file__).with_name("stock_run.py")), url, key, config, str(place), TASK,
            str(place / "out.traj.json"),
        ]  # fmt: skip
        process = await asyncio.create_subprocess_exec(
            *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        told, _ = await process.communicate()
        assert process.returncode == 0, told.decode()
        await session.close()
        return session.trajectory(), (place / "out.traj.json").read_bytes()


async def run_ours(replies: list[FakeReply], config: str, sandbox: Sandbox) -> tuple[Trajectory, bytes]:
    """The same of ours."""
    async with Gateway() as gateway:
        session = await gateway.open_session(FakeModel(replies), SessionContext())
        harness = Miniswe(MinisweConfig(config_file=config))
        task = Task(id="t", taskset="tests", instruction=TASK)
        result = await harness.run(task, sandbox, session.endpoint, [], Limits())
        await session.close()
        return session.trajectory(), result.artifacts["mini-swe-agent.traj.json"]


def sent(trajectory: Trajectory) -> list[str]:
    """Every message of every request and the tools, as lines."""
    full = conversations(trajectory)
    lines = []
    for call in trajectory.calls:
        lines += [f"call {call.index}, tools {call.tools and json.loads(trajectory.blobs[call.tools])}"]
        messages = [json.loads(trajectory.messages[key].raw) for key in full[call.index]]
        lines += [json.dumps(message, sort_keys=True) for message in messages]
    return lines


@REAL
@pytest.mark.parametrize(("config", "replies"), [("mini.yaml", TOOLS), ("mini_textbased.yaml", TEXT)])
async def test_the_messages_sent_are_those_of_a_stock_run(
    config: str, replies: list[FakeReply], sandbox: Sandbox, tmp_path: Path
) -> None:
    ours, our_file = await run_ours(replies, config, sandbox)
    stock, stock_file = await run_stock(replies, config, tmp_path)
    assert len(stock.calls) == len(replies)
    assert list(difflib.unified_diff(sent(stock), sent(ours), "stock", "ours", lineterm="")) == []
    theirs, mine = read_trajectory(stock_file), read_trajectory(our_file)
    assert (mine.info.exit_status, mine.info.submission) == (theirs.info.exit_status, theirs.info.submission)
    kept = ("role", "content", "tool_call_id", "tool_calls")
    for one, other in zip(theirs.messages, mine.messages, strict=True):
        assert [dict(one).get(key) for key in kept] == [dict(other).get(key) for key in kept]


async def test_a_file_of_the_stock_package_is_read_whole(tmp_path: Path) -> None:
    _, data = await run_stock([bash("echo hi"), submit("done")], "mini.yaml", tmp_path)
    read = read_trajectory(data)
    assert read.model_dump(mode="json", exclude_unset=True) == json.loads(data)
    assert (read.info.exit_status, read.info.submission) == ("Submitted", "done")
    assert [message.role for message in read.messages] == [
        "system", "user", "assistant", "tool", "assistant", "exit",
    ]  # fmt: skip
    assert read.info.model_stats["api_calls"] == 2
