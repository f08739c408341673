"""Files that the real agents wrote: mini-swe-agent's trajectory, and OpenHands' event log."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from orchard_core import (
    ConfigError,
    Gateway,
    Limits,
    Outcome,
    SandboxUnavailable,
    SessionContext,
    Task,
    ToolCall,
    load_format,
    load_harness,
    open_sandbox,
    read_rows,
)
from orchard_core.gateway.expand import conversations
from orchard_core.testing import FakeModel, FakeProvider, FakeReply, skip_without_isolation
from orchard_core.testing.suites.harness.stage import stage
from orchard_core.types.sandbox import SandboxSpec

TASK = Task(id="one", taskset="tests", instruction="Tabs\there, é.")


def bash(*commands: str) -> FakeReply:
    calls = tuple(
        ToolCall(id=f"c{n}", name="bash", arguments=json.dumps({"command": command}))
        for n, command in enumerate(commands)
    )
    return FakeReply(text="On with it.", calls=calls)


@pytest.fixture
async def miniswe(tmp_path: Path) -> tuple[Path, list[dict[str, Any]]]:
    """A file of the real agent, and the messages of its last request as the model had them."""
    if find_spec("minisweagent") is None:
        pytest.skip("mini-swe-agent is not installed: pip install orchard-harness-miniswe")
    harness = load_harness("miniswe")
    replies = [
        bash("printf 'one\\n'; printf two >&2", "exit 3"),
        FakeReply(text="I forgot to call."),
        bash("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; echo patch"),
    ]
    async with Gateway() as gateway, await FakeProvider().create(SandboxSpec()) as sandbox:
        session = await gateway.open_session(FakeModel(replies), SessionContext())
        result = await harness.run(TASK, sandbox, session.endpoint, [], Limits())
        await session.close()
        recorded = session.trajectory()
    path = tmp_path / "repo__1" / "repo__1.traj.json"
    path.parent.mkdir()
    path.write_bytes(result.artifacts["mini-swe-agent.traj.json"])
    (tmp_path / "preds.json").write_text('{"repo__1": {"model_patch": "patch"}}')
    last = conversations(recorded)[recorded.calls[-1].index]
    return path, [json.loads(recorded.messages[key].raw) for key in last]


async def test_a_real_trajectory_is_read_as_the_model_saw_it(
    miniswe: tuple[Path, list[dict[str, Any]]],
) -> None:
    path, sent = miniswe
    (row,) = read_rows(path.parents[1])
    said = json.loads(row.messages)
    seen = [(one["role"], one.get("content"), one.get("tool_calls")) for one in sent]
    assert [(one["role"], one.get("content"), one.get("tool_calls")) for one in said[: len(sent)]] == seen
    assert (row.harness, row.task, row.outcome) == ("miniswe", "repo__1", Outcome.COMPLETED)
    assert row.turns == 2, "the agent itself leaves out an answer without a call"
    assert [bit for bit, one in zip(row.mask, said, strict=True) if one["role"] == "assistant"] == [1, 1]


async def test_a_real_trajectory_is_given_back_equal(miniswe: tuple[Path, list[dict[str, Any]]]) -> None:
    path, _ = miniswe
    load_format("miniswe").write(read_rows(path), path.with_name("again.traj.json"))
    assert json.loads(path.with_name("again.traj.json").read_bytes()) == json.loads(path.read_bytes())


async def test_what_changed_of_a_real_trajectory_is_written(
    miniswe: tuple[Path, list[dict[str, Any]]],
) -> None:
    path, _ = miniswe
    (row,) = read_rows(path)
    said = json.loads(row.messages)
    said[-1]["content"] = "another end"
    changed = row.model_copy(update={"messages": json.dumps(said), "reward": 0.5})
    load_format("miniswe").write([changed], path.with_name("again.traj.json"))
    (back,) = read_rows(path.with_name("again.traj.json"))
    assert json.loads(back.messages)[-1]["content"] == "another end"
    assert back.reward == 0.5


def test_a_trajectory_of_another_version_is_refused(tmp_path: Path) -> None:
    from orchard_core import DatasetCorrupt

    (tmp_path / "a.traj.json").write_text('{"trajectory_format": "mini-swe-agent-9", "messages": []}')
    with pytest.raises(DatasetCorrupt, match="field trajectory_format: 'mini-swe-agent-9'"):
        list(read_rows(tmp_path / "a.traj.json", format="miniswe"))


def test_an_event_log_is_read_as_the_model_saw_it(tmp_path: Path) -> None:
    log = load_format("openhands").example(tmp_path)  # type: ignore[attr-defined]
    (row,) = read_rows(log)
    said = json.loads(row.messages)
    assert [one["role"] for one in said] == [
        "system",
        "user",
        "assistant",
        "tool",
        "tool",
        "assistant",
        "tool",
        "assistant",
    ]
    assert [call["id"] for call in said[2]["tool_calls"]] == ["call-1", "call-2"], (
        "calls of one answer are one message"
    )
    assert said[2]["tool_calls"][1]["function"]["arguments"] == '{"command":"pwd"}'
    assert (
        said[6]["content"] == "\n[Current working directory: /workspace]\n[Command finished with exit code 1]"
    )
    assert row.turns == 3


def test_a_branched_log_is_the_branch_that_was_gone_on_with(tmp_path: Path) -> None:
    log = load_format("openhands").example(tmp_path)  # type: ignore[attr-defined]
    events = [json.loads(line) for line in log.read_text().splitlines()]
    other = {**events[-1], "id": "event-9", "parent_id": "event-5"}
    other["llm_message"] = {"role": "assistant", "content": [{"type": "text", "text": "another end"}]}
    log.write_text("".join(json.dumps(event) + "\n" for event in [*events, other]))
    (row,) = read_rows(log)
    assert [one["role"] for one in json.loads(row.messages)][-2:] == ["tool", "assistant"]
    assert json.loads(row.messages)[-1]["content"] == "another end"
    assert len(json.loads(row.messages)) == 6


def words(content: Any) -> str:
    """The text of a message, whether it is one or in parts."""
    return content if isinstance(content, str) else "\n".join(part["text"] for part in content)


@pytest.mark.slow
async def test_a_real_event_log_is_read_as_the_model_saw_it(tmp_path: Path) -> None:
    replies = [
        FakeReply(
            text="On with it.", calls=(ToolCall(id="a", name="terminal", arguments='{"command":"echo hi"}'),)
        ),
        FakeReply(
            text="two",
            calls=(
                ToolCall(id="b", name="terminal", arguments='{"command": "false"}'),
                ToolCall(id="c", name="terminal", arguments='{"command": "pwd"}'),
            ),
        ),
        FakeReply(text="", calls=(ToolCall(id="d", name="terminal", arguments='{"nope": 1}'),)),
        FakeReply(text="end", calls=(ToolCall(id="e", name="finish", arguments='{"message": "all done"}'),)),
    ]
    try:
        async with open_sandbox("local") as sandbox, stage(load_harness("openhands")) as before:
            played = await before.play(TASK, sandbox, FakeModel(replies))
    except SandboxUnavailable as error:
        skip_without_isolation(error)
    except ConfigError as error:
        pytest.skip(str(error))
    for name, data in played.result.artifacts.items():
        (tmp_path / Path(name).name).write_bytes(data)
    (row,) = read_rows(tmp_path)
    last = conversations(played.trajectory)[played.trajectory.calls[-1].index]
    sent = [json.loads(played.trajectory.messages[key].raw) for key in last]
    said = json.loads(row.messages)
    assert [
        (one["role"], words(one.get("content") or ""), one.get("tool_calls")) for one in said[: len(sent)]
    ] == [(one["role"], words(one.get("content") or ""), one.get("tool_calls")) for one in sent]
    assert row.model == "openai/fake"
    assert row.turns == 4
