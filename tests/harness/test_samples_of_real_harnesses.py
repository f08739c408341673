"""What a rollout under each real CLI gives to training: one growing conversation, and what is beside it."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from orchard_core import (
    Gateway,
    Limits,
    SampleLabel,
    SampleSet,
    SandboxSpec,
    SandboxUnavailable,
    SessionContext,
    Task,
    Untrained,
    build_samples,
    load_provider,
    mounts_of,
)
from orchard_core.gateway.scripted_tokens import ScriptedTokenModel
from orchard_core.testing import skip_without_isolation

from .real import real_harness

TASK = Task(id="samples", taskset="tests", instruction="Write 42 into answer.txt.")
SHELL = {
    "pi": ("bash", "command"),
    "opencode": ("bash", "command"),
    "codex": ("exec_command", "cmd"),
    "claude": ("Bash", "command"),
    "kimi": ("Bash", "command"),
}
"""What each calls its shell, and the command in it."""
REWRITES = {"pi", "opencode", "kimi"}
"""Those that write a call's arguments anew when they send it back."""
TITLE: Mapping[str, object] = {"role": "assistant", "content": "A title"}


def replies(cli: str) -> list[Mapping[str, object]]:
    tool, argument = SHELL[cli]

    def call(number: int, command: str) -> Mapping[str, object]:
        function = {"name": tool, "arguments": json.dumps({argument: command})}
        calls = [{"id": f"call_{number}", "type": "function", "function": function}]
        return {"role": "assistant", "content": "On with it.", "tool_calls": calls}

    work = [call(1, "printf 4 > answer.txt"), call(2, "printf 2 >> answer.txt")]
    said = [*work, {"role": "assistant", "content": "forty-two"}]
    return [TITLE, *said] if cli == "opencode" else said


async def samples(cli: str) -> SampleSet:
    harness = await real_harness(f"cli:{cli}")
    provider = load_provider("local")
    try:
        async with Gateway() as gateway:
            spec = SandboxSpec(mounts=tuple(await mounts_of(harness)))
            async with await provider.create(spec) as sandbox:
                context = SessionContext(rollout=cli, task=TASK)
                session = await gateway.open_session(ScriptedTokenModel(replies(cli)), context)
                result = await harness.run(TASK, sandbox, session.endpoint, [], Limits())
                await session.close()
                assert result.answer == "forty-two"
                assert await sandbox.read_bytes("/workspace/answer.txt") == b"42"
        return build_samples(session.trajectory())
    except SandboxUnavailable as error:
        skip_without_isolation(error)
    finally:
        await provider.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    "cli", ["pi", *(pytest.param(name, marks=pytest.mark.nightly) for name in SHELL if name != "pi")]
)
async def test_a_rollout_is_one_sample_that_holds_every_answer(cli: str) -> None:
    made = await samples(cli)
    main, *others = made.samples
    assert (main.label, len(main.calls)) == (SampleLabel.MAIN, 3)
    assert {sample.label for sample in others} <= {SampleLabel.SIDE}
    assert len(others) == (cli == "opencode")
    reasons = {span.reason for span in made.untrained}
    assert reasons <= ({Untrained.DRIFT, Untrained.SIDE} if cli in REWRITES else set())
    drifted = [span for span in made.untrained if span.reason is Untrained.DRIFT]
    assert all(span.stop - span.start == 1 for span in drifted), "no more than the space after a colon"
