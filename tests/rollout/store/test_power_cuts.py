"""No reported rollout is lost and nothing is corrupt, wherever the power is cut."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from orchard_core import Artifact, Outcome, Rollout, StoreError
from orchard_core.rollout.store.files import DiskFiles, Files
from orchard_core.rollout.store.run import open_run
from orchard_core.rollout.store.writer import RunWriter

from ..making import make_config, make_planned, make_rollout
from .power import LOSSES, ForgetfulFiles, PowerCut

TASKS = ("a", "b", "c", "d")
CONTENT = {task: f"left by {task}".encode() for task in TASKS} | {"d": b"left by c"}


async def _once(data: bytes) -> AsyncIterator[bytes]:
    yield data


async def _finish(writer: RunWriter, task: str, reported: dict[str, Rollout]) -> None:
    await writer.started(make_planned(task).id, tries=1)
    blob = await writer.blobs.write(_once(CONTENT[task]), limit=1 << 20)
    artifact = Artifact(path="/x", kind="file", sha256=blob.sha256, size=blob.size)
    rollout = make_rollout(task, turns=3, artifacts=(artifact,))
    await writer.finish(rollout)
    reported[rollout.id] = rollout


async def _session(root: Path, files: Files, reported: dict[str, Rollout]) -> None:
    """One life of a driver: run what is missing, until it ends or the power is cut."""
    # Shards this small force a new one every other rollout.
    writer = await RunWriter.open(root, make_config(), resume=True, files=files, shard_bytes=900)
    try:
        state = writer.state
        await writer.plan(
            [make_planned(task) for task in TASKS if make_planned(task).id not in state.planned]
        )
        missing = {item.task for item in state.missing()}
        if "a" in missing:
            await _finish(writer, "a", reported)
        if "b" in missing:
            await writer.retried(make_rollout("b", outcome=Outcome.SANDBOX_FAILED, error="gone"))
            await writer.cancelled(make_planned("b").id)
        await asyncio.gather(*(_finish(writer, task, reported) for task in "bcd" if task in missing))
    finally:
        await writer.close()


async def _life(root: Path, files: ForgetfulFiles, reported: dict[str, Rollout]) -> bool:
    """True when the session ended before the power was cut."""
    try:
        await _session(root, files, reported)
    except (PowerCut, StoreError):
        assert files.off
        return False
    return True


async def _check(root: Path, reported: dict[str, Rollout]) -> None:
    """What was reported is there, whole, and is what was reported."""
    for name, rollout in reported.items():
        found = open_run(root).rollout(name)
        assert found == rollout
        task = rollout.task.id
        assert await open_run(root).blobs.read(found.artifacts[0].sha256) == CONTENT[task]


async def _check_complete(root: Path) -> None:
    run = open_run(root)
    assert sorted(rollout.task.id for rollout in run.rollouts()) == sorted(TASKS)
    assert run.missing() == []
    assert run.damaged() == []
    for rollout in run.rollouts():
        for artifact in rollout.artifacts:
            assert await run.blobs.read(artifact.sha256) == CONTENT[rollout.task.id]


async def _operations(tmp_path: Path) -> int:
    files = ForgetfulFiles(tmp_path / "whole")
    await _session(tmp_path / "whole", files, {})
    return files.operations


@pytest.mark.parametrize("loss", LOSSES)
async def test_a_cut_at_any_operation_loses_no_reported_rollout(tmp_path: Path, loss: str) -> None:
    total = await _operations(tmp_path)
    assert total > 30
    for cut in range(total + 4):  # how much is batched varies, so the last few may cut nothing
        root = tmp_path / f"run{cut}"
        files = ForgetfulFiles(root, cut_after=cut)
        reported: dict[str, Rollout] = {}
        await _life(root, files, reported)
        files.restore(loss, seed=cut)
        if reported:
            await _check(root, reported)
        await _session(root, DiskFiles(), reported)
        await _check(root, reported)
        await _check_complete(root)


@pytest.mark.parametrize("loss", LOSSES)
async def test_a_cut_while_mending_loses_nothing_either(tmp_path: Path, loss: str) -> None:
    for seed in range(12):
        draw = random.Random(seed)
        root = tmp_path / f"run{seed}"
        reported: dict[str, Rollout] = {}
        life = 0
        while True:
            files = ForgetfulFiles(root, cut_after=draw.randrange(1, 12 + 4 * life))
            if await _life(root, files, reported):
                break
            files.restore(loss, seed=seed)
            life += 1
            if reported:
                await _check(root, reported)
        assert life > 0
        await _check_complete(root)
