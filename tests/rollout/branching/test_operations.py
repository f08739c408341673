"""Everything a harness can do in a sandbox is answered from the log as it was, and nothing else is."""

from __future__ import annotations

import io
import tarfile
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import pytest

from orchard_core import (
    FileMissing,
    HarnessResult,
    Limits,
    ModelEndpoint,
    Sandbox,
    SandboxGone,
    StopReason,
    Task,
    Tool,
)
from orchard_core.rollout.attempt import run_rollout
from orchard_core.rollout.branching.branch import BranchMode
from orchard_core.rollout.branching.logged_sandbox import LoggedSandbox
from orchard_core.rollout.branching.operations import Answerer, Doing, Fed, Operation, Recorder
from orchard_core.rollout.parts import RolloutParts
from orchard_core.sandbox.wrapper import SandboxWrapper
from orchard_core.testing import FakeHarness, FakeModel, FakeProvider, chat

from ..attempts import the_task
from .making import branching


async def pieces(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


def a_tar() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        info = tarfile.TarInfo("inside.txt")
        info.size = 2
        tar.addfile(info, io.BytesIO(b"in"))
    return out.getvalue()


class Busy(FakeHarness):
    """Does everything with files that there is, and tells the model what came of it."""

    def __init__(self, source: Path) -> None:
        super().__init__()
        self.source = source
        self.curious = self.lazy = False

    async def run(
        self, task: Task, sandbox: Sandbox, model: ModelEndpoint, tools: Sequence[Tool], limits: Limits
    ) -> HarnessResult:
        said = [{"role": "user", "content": await self._work(sandbox)}]
        said.append({**await chat(model, said)})
        read = await sandbox.exec("cat d/a d/b u/f t/inside.txt", cwd="/workspace")
        await chat(model, [*said, {"role": "user", "content": read.text}])
        return HarnessResult(stop=StopReason.ANSWERED)

    async def _work(self, sandbox: Sandbox) -> str:
        await sandbox.mkdir("/workspace/d")
        await sandbox.write("/workspace/d/a", b"a\n" * 3)
        await sandbox.write("/workspace/d/b", pieces(b"b1\n", b"b2\n"))
        await sandbox.upload(self.source, "/workspace/u")
        await sandbox.write_tree("/workspace/t", pieces(a_tar()))
        await sandbox.write("/workspace/gone", b"x")
        await sandbox.remove("/workspace/gone")
        if not self.lazy:
            await sandbox.exec("true")
        if self.curious:
            await sandbox.exec("whoami")
        done = await sandbox.exec("cat; echo $MORE", stdin=pieces(b"fed\n"), env={"MORE": "more"})
        async with aclosing(sandbox.read("/workspace/d/a")) as some:  # type: ignore[type-var]
            first = await anext(some)
        whole = await sandbox.read_bytes("/workspace/d/b")
        names = [entry.name for entry in await sandbox.list("/workspace")]
        size = (await sandbox.stat("/workspace/d/a")).size
        tree = sum([len(piece) async for piece in sandbox.read_tree("/workspace/t")])
        try:
            await sandbox.stat("/workspace/gone")
        except FileMissing as error:
            missing = type(error).__name__
        return repr((done.text, first, whole, names, size, tree, missing))


@pytest.fixture
def busy(parts: RolloutParts, tmp_path: Path) -> RolloutParts:
    (tmp_path / "f").write_text("uploaded\n")
    return replace(parts, harness=Busy(tmp_path), model=FakeModel(["on", "over"]))


async def test_what_was_done_before_a_turn_is_answered_and_not_done(
    busy: RolloutParts, provider: FakeProvider
) -> None:
    rollout = await run_rollout(the_task(busy), busy)
    async with branching(rollout, busy) as brancher:
        await brancher.prepare([0, 1])
        first, second = await brancher.branch(0, 0), await brancher.branch(1, 0)
    assert (first.invalid, first.mode) == ("", BranchMode.RESTORE)
    assert (second.invalid, second.mode) == ("", BranchMode.RESTORE)
    assert provider.created[-2].commands == ["cat d/a d/b u/f t/inside.txt"]
    assert provider.created[-1].commands == []
    last = rollout.trajectory.messages
    assert any("uploaded" in message.raw and "b2" in message.raw for message in last.values())


async def test_another_operation_than_the_recorded_one_is_a_difference(
    busy: RolloutParts, tmp_path: Path
) -> None:
    harness = busy.harness
    assert isinstance(harness, Busy)
    rollout = await run_rollout(the_task(busy), busy)
    async with branching(rollout, busy) as brancher:
        await brancher.prepare([1])
        (tmp_path / "f").unlink()
        harness.curious = True
        assert "an operation was not recorded" in (await brancher.branch(1, 0)).invalid
        harness.curious, harness.lazy = False, True
        assert "1 recorded operations were not repeated" in (await brancher.branch(1, 1)).invalid


async def unreached() -> None:
    raise AssertionError("it was really done")


async def test_each_result_is_given_once_and_in_the_order_it_came(busy: RolloutParts) -> None:
    recorder = Recorder()
    doing = Doing(what=("exec", "date"))
    for result in ("one", "two"):
        assert await recorder.once(doing, lambda result=result: told(result)) == result  # type: ignore[misc]
    answerer = Answerer(recorder.operations, lambda _how: None)
    assert [await answerer.once(doing, lambda: told("new")) for _ in range(2)] == ["one", "two"]
    with pytest.raises(SandboxGone):
        await answerer.once(doing, lambda: told("new"))
    fresh = Answerer([], lambda _how: None)
    fresh.go_live()
    assert await fresh.once(doing, lambda: told("new")) == "new"


async def told(text: str) -> str:
    return text


async def test_data_that_goes_in_is_part_of_what_was_done() -> None:
    recorder = Recorder()

    def write(*parts: bytes) -> Doing:
        return Doing(what=("write", "/f"), fed=Fed(pieces(*parts)))

    async def done(doing: Doing) -> None:
        assert doing.fed is not None
        assert doing.fed.data is not None
        async for _ in doing.fed.data:  # type: ignore[union-attr]
            pass

    first = write(b"ab", b"c")
    await recorder.once(first, lambda: done(first))
    assert recorder.operations[0].key == Doing(what=("write", "/f"), fed=Fed(b"abc")).key
    answerer = Answerer(recorder.operations, lambda _how: None)
    with pytest.raises(SandboxGone):
        await answerer.once(write(b"abd"), unreached)
    await answerer.once(write(b"a", b"bc"), unreached)


async def test_what_is_too_much_to_keep_is_done_again_by_branches() -> None:
    recorder = Recorder(kept_bytes=10)
    doing = Doing(what=("read", "/f"))
    async for _ in recorder.pieces(doing, lambda: pieces(b"123456", b"789012")):
        assert recorder.in_flight == 1
    assert "gave more than" in recorder.lost
    assert recorder.in_flight == 0


def test_an_operation_is_named_in_few_words() -> None:
    assert len(str(Doing(what=("exec", "x" * 10_000)))) == 200
    assert Operation().key == ""


def test_every_operation_that_acts_in_a_sandbox_is_under_the_log() -> None:
    """One that is added to the contract does not pass by unseen."""
    unlogged = {
        "id",
        "spec",
        "capabilities",
        "alive",
        "snapshot",
        "fork",
        "withdraw",
        "reset_processes",
        "close",
    }
    operations = {name for name in vars(Sandbox) if not name.startswith("_")}
    assert operations - unlogged == {name for name in vars(LoggedSandbox) if not name.startswith("_")}
    assert operations == {name for name in vars(SandboxWrapper) if not name.startswith("_")}
