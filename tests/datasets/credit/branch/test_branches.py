"""Continuations are durable one by one: a kill repeats at most those that were under way."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from orchard_core import Attribution, DatasetCorrupt, DatasetError
from orchard_core.datasets.credit.branch.branches import BranchLog, read_branches
from orchard_core.datasets.credit.head import BRANCHES_NAME
from orchard_core.rollout.branching.branch import Branch, BranchMode, origin_of

from .driver import OPTIONS
from .making import bench, turns_of

ROOT = Path(__file__).parents[4]


def branch(number: int, **fields: object) -> Branch:
    given = {"rollout": "r", "origin": "o", "turn": 0, "number": number, "seed": number}
    return Branch.model_validate({**given, "mode": BranchMode.RERUN, "reward": 1.0, **fields})


def written(directory: Path, count: int = 3) -> list[Branch]:
    log = BranchLog(directory)
    made = [branch(number) for number in range(count)]
    for one in made:
        log.add(one)
    log.close()
    return made


def test_what_was_added_is_read_again(tmp_path: Path) -> None:
    made = written(tmp_path)
    assert list(read_branches(tmp_path)) == made
    log = BranchLog(tmp_path)
    assert log.of("r", "o") == {(0, number): made[number] for number in range(3)}
    assert log.of("r", "another record of it") == {}
    assert log.of("s", "o") == {}


def test_a_torn_tail_is_cut_wherever_it_was_torn(tmp_path: Path) -> None:
    made = written(tmp_path)
    path = tmp_path / BRANCHES_NAME
    whole = path.read_bytes()
    first = whole.index(b"\n") + 1
    for size in range(first, len(whole)):
        path.write_bytes(whole[:size])
        kept = whole[:size].count(b"\n")
        assert list(read_branches(tmp_path)) == made[:kept]
        log = BranchLog(tmp_path)
        log.add(branch(9))
        log.close()
        assert list(read_branches(tmp_path)) == [*made[:kept], branch(9)]


def test_a_damaged_line_before_a_whole_one_is_told_with_its_place(tmp_path: Path) -> None:
    written(tmp_path)
    path = tmp_path / BRANCHES_NAME
    path.write_bytes(path.read_bytes().replace(b'"number":1', b'"number":7'))
    with pytest.raises(DatasetCorrupt, match=r"branches\.jsonl, row 1"):
        BranchLog(tmp_path)


def test_lines_of_a_newer_orchard_are_left_alone(tmp_path: Path) -> None:
    log = BranchLog(tmp_path)
    log.add(branch(0, schema_version=2))
    log.close()
    before = (tmp_path / BRANCHES_NAME).read_bytes()
    with pytest.raises(DatasetError, match="newer Orchard"):
        BranchLog(tmp_path)
    assert (tmp_path / BRANCHES_NAME).read_bytes() == before


def test_what_failed_for_want_of_a_machine_is_not_among_what_is_done(tmp_path: Path) -> None:
    log = BranchLog(tmp_path)
    log.add(branch(0, reward=None, invalid="no machine", attribution=Attribution.INFRASTRUCTURE))
    log.add(branch(1, reward=None, invalid="it differs"))
    assert log.of("r", "o").keys() == {(0, 1)}


def test_text_that_no_file_can_carry_is_escaped(tmp_path: Path) -> None:
    log = BranchLog(tmp_path)
    log.add(branch(0, reward=None, invalid="\ud800"))
    assert [one.invalid for one in read_branches(tmp_path)] == ["\\ud800"]


async def killed_after(count: int, directory: Path) -> int | None:
    module = "tests.datasets.credit.branch.driver"
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", module, str(directory), str(count))
    await process.wait()
    return process.returncode


async def test_after_a_kill_the_rest_is_measured_and_the_credit_is_the_same(tmp_path: Path) -> None:
    assert await killed_after(4, tmp_path / "killed") == -9
    before = list(read_branches(tmp_path / "killed"))
    assert len(before) >= 4
    async with bench(tmp_path / "killed") as steps, bench(tmp_path / "whole") as other:
        rollout = await steps.unresolved()
        assert {one.rollout for one in before} == {rollout.id}
        # The driver recorded the same rollout a moment earlier, which is another record of it.
        rollout = rollout.model_copy(update={"started_at": 1.0})
        renamed = [one.model_copy(update={"origin": origin_of(rollout)}) for one in before]
        (tmp_path / "killed" / BRANCHES_NAME).unlink()
        log = BranchLog(tmp_path / "killed")
        for one in renamed:
            log.add(one)
        log.close()
        resumed = steps.estimator(**OPTIONS)
        credit = await resumed.estimate(steps.item(rollout))
        straight = other.estimator(**OPTIONS)
        assert credit == await straight.estimate(other.item(rollout))
        assert not {*turns_of(steps.ran)} & {*turns_of(before)}
        assert turns_of([*steps.ran, *before]) == turns_of(other.ran)
        await resumed.close()
        await straight.close()
