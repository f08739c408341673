"""A real matrix whose driver is killed again and again repeats nothing that was reported."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
from collections import Counter
from pathlib import Path

import pytest

from orchard_core.rollout.matrix.plan import cell_directory, read_plan
from orchard_core.rollout.store.run import open_run

DRIVER = Path(__file__).with_name("matrix_driver.py")
PLANNED = 12
KILLS = 5


@pytest.mark.slow
async def test_a_killed_matrix_repeats_nothing_that_was_reported(tmp_path: Path) -> None:
    draw = random.Random(5)
    reported: Counter[str] = Counter()
    kills = 0
    while kills < KILLS and await _life(tmp_path / "m", reported, draw.randint(0, 3)):
        kills += 1
    while await _life(tmp_path / "m", reported, PLANNED + 1):
        kills += 1
    assert kills >= 2
    assert max(reported.values()) == 1
    finished = [
        rollout
        for cell in read_plan(tmp_path / "m").cells
        for rollout in open_run(cell_directory(tmp_path / "m", cell.key)).rollouts()
    ]
    assert len(finished) == PLANNED
    assert {rollout.score for rollout in finished} == {1.0}


async def _life(root: Path, reported: Counter[str], reports: int) -> bool:
    """One driver, killed after so many reports; with none, as soon as a cell is open. True when it was
    killed, False when it was done before that."""
    driver = await asyncio.create_subprocess_exec(
        sys.executable, str(DRIVER), str(root), stdout=asyncio.subprocess.PIPE, start_new_session=True
    )
    assert driver.stdout is not None
    seen = 0
    async for line in driver.stdout:
        if not line.endswith(b"\n"):
            continue
        if line != b"opened\n":
            reported[line.strip().decode()] += 1
            seen += 1
        if seen >= reports and driver.returncode is None:
            os.kill(driver.pid, signal.SIGKILL)
            reports = PLANNED + 1
    code = await driver.wait()
    assert code in {0, -signal.SIGKILL}
    return code != 0
