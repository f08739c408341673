"""What is special about ZeroClaw: its settings, its subagents, its trimmed history, its errors."""

from __future__ import annotations

import tomllib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from orchard_harness_zeroclaw.config import ZeroClawConfig
from orchard_harness_zeroclaw.harness import ZeroClaw
from orchard_harness_zeroclaw.settings import settings

from orchard_core import (
    CommandNotFound,
    ConfigError,
    HarnessCrashed,
    ImageRef,
    ModelEndpoint,
    Sandbox,
    SandboxSpec,
    SandboxUnavailable,
    Task,
    ThreadKind,
    build_sample_report,
    load_provider,
)
from orchard_core.testing import FakeModel, FakeReply, skip_without_isolation, stage

TASK = Task(id="t", taskset="tests", instruction="Count to three.")


@pytest_asyncio.fixture
async def sandbox(standin: Path) -> AsyncIterator[Sandbox]:
    """A real one that shows the stand-in, as a rollout would make it."""
    provider = load_provider("local")
    mounts = await ZeroClaw(ZeroClawConfig(binary=standin)).mounts()
    try:
        async with await provider.create(SandboxSpec(mounts=tuple(mounts))) as made:
            yield made
    except SandboxUnavailable as error:
        skip_without_isolation(error)
    finally:
        await provider.close()


async def test_a_subagents_turns_are_a_thread_of_their_own(sandbox: Sandbox, standin: Path) -> None:
    model = FakeModel(
        [
            FakeReply.call("spawn_subagent", task="Find the colour of the sky in the notes."),
            FakeReply.call("shell", command="echo blue"),
            "It is blue.",
            FakeReply.call("shell", command="echo noted"),
            "The sky is blue.",
        ]
    )
    async with stage(ZeroClaw(ZeroClawConfig(binary=standin))) as played:
        ran = await played.play(TASK, sandbox, model)
    report = build_sample_report(ran.trajectory)
    assert ran.result.answer == "The sky is blue."
    assert [(thread.kind, thread.calls) for thread in report.threads] == [
        (ThreadKind.MAIN, (0, 3, 4)),
        (ThreadKind.SUBAGENT, (1, 2)),
    ]
    assert report.trained == report.sampled


async def test_a_history_over_its_budget_forks_where_turns_left(sandbox: Sandbox, standin: Path) -> None:
    long = [FakeReply.call("shell", command=f"seq {n} {n + 300}") for n in (1000, 2000, 3000)]
    async with stage(ZeroClaw(ZeroClawConfig(binary=standin, context_tokens=1000))) as played:
        ran = await played.play(TASK, sandbox, FakeModel([*long, "Counted."]))
    report = build_sample_report(ran.trajectory)
    assert ThreadKind.TRIMMED in {thread.kind for thread in report.threads}
    assert report.trained == report.sampled
    trained = [call for thread in report.threads for call in thread.calls]
    assert sorted(trained) == sorted(set(trained)) == [0, 1, 2, 3]


async def test_subagents_can_be_had_without(sandbox: Sandbox, standin: Path) -> None:
    model = FakeModel([FakeReply.call("spawn_subagent", task="Anything."), "Done alone."])
    async with stage(ZeroClaw(ZeroClawConfig(binary=standin, subagents=False))) as played:
        ran = await played.play(TASK, sandbox, model)
    assert "unknown tool spawn_subagent" in ran.heard
    assert '"name":"spawn_subagent","description"' not in "".join(ran.trajectory.blobs.values())


async def test_more_rounds_than_its_own_default_are_given(sandbox: Sandbox, standin: Path) -> None:
    rounds = [FakeReply.call("shell", command=f"echo {n}") for n in range(15)]
    async with stage(ZeroClaw(ZeroClawConfig(binary=standin))) as played:
        ran = await played.play(TASK, sandbox, FakeModel([*rounds, "Fifteen."]))
    assert (ran.result.answer, ran.result.turns) == ("Fifteen.", 16)


@pytest.mark.parametrize("size", [1_000, 300_000], ids=["short", "longer than an argument"])
async def test_every_instruction_arrives_whole(sandbox: Sandbox, standin: Path, size: int) -> None:
    text = "x" * size + " and that is the end of it"
    model = FakeModel([FakeReply.call("shell", command="tail -c 30 /tmp/harness/task.md")])
    async with stage(ZeroClaw(ZeroClawConfig(binary=standin))) as played:
        ran = await played.play(TASK.model_copy(update={"instruction": text}), sandbox, model)
    assert "that is the end of it" in ran.heard


async def test_an_instruction_that_looks_like_a_flag_arrives(sandbox: Sandbox, standin: Path) -> None:
    task = TASK.model_copy(update={"instruction": "- count\n- to three"})
    async with stage(ZeroClaw(ZeroClawConfig(binary=standin))) as played:
        ran = await played.play(task, sandbox, FakeModel(["1 2 3"]))
    assert ran.result.answer == "1 2 3"
    assert "- count" in ran.heard


def test_the_settings_hold_whatever_the_names_are() -> None:
    odd = 'a "quoted" \\ name\nwith a line\x7f and é'
    endpoint = ModelEndpoint(base_url="http://127.0.0.1:1/v1", api_key="sk-orchard-x", model=odd)
    task = TASK.model_copy(update={"workdir": f"/{odd}"})
    read = tomllib.loads(settings(ZeroClawConfig(temperature=0.0), endpoint, task, tools=True))
    provider = read["providers"]["models"]["custom"]["orchard"]
    assert (provider["model"], provider["temperature"]) == (odd, 0.0)
    assert read["agents"]["orchard"]["workspace"]["path"] == f"/{odd}"
    assert read["mcp"]["servers"][0]["headers"] == {"Authorization": "Bearer sk-orchard-x"}


def test_a_program_that_is_not_there_is_refused_first(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no program"):
        ZeroClaw(ZeroClawConfig(binary=tmp_path / "nothing"))


def test_the_programs_release_is_recorded(standin: Path) -> None:
    assert ZeroClaw(ZeroClawConfig(binary=standin)).version == "0.1.0 (zeroclaw 0.8.4)"


async def test_a_program_that_fails_by_itself_is_the_harness_failing(sandbox: Sandbox, standin: Path) -> None:
    standin.write_text("#!/bin/sh\necho broken >&2\nexit 3\n")
    async with stage(ZeroClaw(ZeroClawConfig(binary=standin))) as played:
        with pytest.raises(HarnessCrashed, match="exit code 3: broken"):
            await played.play(TASK, sandbox, FakeModel())


async def test_an_image_without_the_program_is_told(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    async with stage(ZeroClaw()) as played:
        with pytest.raises(CommandNotFound, match="zeroclaw"):
            await played.play(TASK, sandbox, FakeModel())


def test_a_machine_without_the_program_is_refused_unless_an_image_may_have_it(
    monkeypatch: pytest.MonkeyPatch, standin: Path
) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(ConfigError, match="no program zeroclaw on PATH"):
        ZeroClaw().check_image(ImageRef(kind="host"))
    ZeroClaw().check_image(ImageRef.parse("oci:docker.io/library/agent:1"))
    ZeroClaw(ZeroClawConfig(binary=standin)).check_image(ImageRef(kind="host"))
