"""On workbench, where the true value of a state can be computed for the noisy oracle, the measured curve
holds it at the stated rate."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from itertools import chain
from math import comb
from pathlib import Path
from statistics import fmean

import pytest

from orchard_core import Task, load_harness, load_model, load_taskset
from orchard_core.datasets.credit.branch.estimator import BranchEstimator
from orchard_core.datasets.credit.branch.measuring import together
from orchard_core.gateway.server import Gateway
from orchard_core.rollout.attempt import run_rollout
from orchard_core.rollout.parts import RolloutParts
from orchard_core.testing.isolation import provider_or_skip
from orchard_core.types.credit import ValuePoint

from .making import Bench
from .truth import Truth

RATE = 0.5
LEVEL = 0.95
AT_ONCE = 8
"""Rollouts that run at once."""
_LOG = logging.getLogger("orchard.tests")
UNLIKELY = 0.01
"""A count that the stated rate gives less often than this speaks against it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One measured turn and the truth about it."""

    point: ValuePoint
    """What was measured."""
    true: float
    """V of the state."""

    @property
    def held(self) -> bool:
        """The interval holds the true value."""
        assert self.point.low is not None
        assert self.point.high is not None
        return self.point.low <= self.true <= self.point.high


@pytest.fixture
async def workbench(tmp_path: Path) -> AsyncIterator[Bench]:
    provider = await provider_or_skip()
    async with Gateway() as gateway:
        parts = RolloutParts(
            taskset=load_taskset("workbench:12"),
            harness=load_harness("react"),
            model=load_model("noisy-oracle", rate=RATE),
            provider=provider,
            gateway=gateway,
        )
        yield Bench(parts=parts, directory=tmp_path)
    await provider.close()


async def pairs(
    workbench: Bench, estimator: BranchEstimator, *, families: frozenset[str], seeds: range
) -> list[Pair]:
    """Every turn of every unresolved rollout of these tasks and seeds, measured at once."""
    tasks = [task for task in workbench.parts.taskset.tasks() if task.id.rsplit("-", 1)[0] in families]
    rooms = asyncio.Semaphore(AT_ONCE)
    found = await together([of_task(workbench, estimator, task, seeds, rooms) for task in tasks])
    return list(chain.from_iterable(found))


async def of_task(
    workbench: Bench, estimator: BranchEstimator, task: Task, seeds: range, rooms: asyncio.Semaphore
) -> list[Pair]:
    truth = Truth(task=task, parts=workbench.parts, rate=RATE, rooms=rooms)
    found = await together([of_rollout(workbench, estimator, truth, seed) for seed in seeds])
    return list(chain.from_iterable(found))


async def of_rollout(workbench: Bench, estimator: BranchEstimator, truth: Truth, seed: int) -> list[Pair]:
    async with truth.rooms:
        rollout = await run_rollout(truth.task, workbench.parts, attempt=seed, seed=seed)
    if rollout.score != 0.0:
        return []
    # The id is that of the attempt, and so are the seeds of its branches; each is to have its own.
    own = rollout.model_copy(update={"id": f"{rollout.task.id}-{seed}"})
    credit = await estimator.estimate(workbench.item(own))
    states = truth.states(rollout)
    assert credit.error == ""
    assert len(credit.points) == len(states) + 1
    return [
        Pair(point=point, true=await truth.value(state))
        for point, state in zip(credit.points, states, strict=False)
        if point.samples
    ]


def at_most(held: int, of: int, rate: float) -> float:
    """How likely so few of so many hold when each does at this rate."""
    return sum(comb(of, i) * rate**i * (1 - rate) ** (of - i) for i in range(held + 1))


def check(found: list[Pair]) -> None:
    """`--log-cli-level=info` shows the rate that was reached."""
    held = sum(pair.held for pair in found)
    _LOG.info("%d of %d intervals hold the true value", held, len(found))
    assert at_most(held, len(found), LEVEL) > UNLIKELY, f"{held} of {len(found)} hold the true value"
    # And they say something: a value can be told from another one half a scale away.
    assert all((pair.point.high or 0.0) - (pair.point.low or 0.0) < 0.75 for pair in found)


async def test_the_intervals_of_a_few_turns_hold_the_true_values(workbench: Bench) -> None:
    estimator = workbench.estimator(k=8, grid=9, max_rollouts=200, concurrency=AT_ONCE)
    found = await pairs(workbench, estimator, families=frozenset({"follow-notes"}), seeds=range(2))
    await estimator.close()
    assert len(found) >= 6
    assert len({pair.true for pair in found}) >= 3
    check(found)


@pytest.mark.slow
@pytest.mark.parametrize(("rollouts", "turns"), [(5, 40), pytest.param(8, 64, marks=pytest.mark.nightly)])
async def test_the_intervals_of_many_turns_hold_the_true_values_at_the_stated_rate(
    workbench: Bench, rollouts: int, turns: int
) -> None:
    """Of so many rollouts of each task, with so many measured turns at least."""
    families = frozenset(task.id.rsplit("-", 1)[0] for task in workbench.parts.taskset.tasks())
    estimator = workbench.estimator(k=8, grid=20, max_rollouts=400, concurrency=AT_ONCE)
    found = await pairs(workbench, estimator, families=families, seeds=range(rollouts))
    await estimator.close()
    assert len(found) >= turns
    check(found)
    # One value for every state would have been found out.
    mean = fmean(pair.true for pair in found)
    flat = sum(replace(pair, true=mean).held for pair in found)
    assert at_most(flat, len(found), LEVEL) < UNLIKELY
