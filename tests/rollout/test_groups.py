"""Groups are read back as the sampler made them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from orchard_core import Attribution, Done, Drop, FixedSampler, More, Outcome, PoolEntry
from orchard_core.rollout.groups import read_groups
from orchard_core.rollout.store.run import open_run
from orchard_core.rollout.store.writer import RunWriter

from .making import make_config, make_planned, make_rollout


async def write(root: Path) -> None:
    """Task a: scores 0, 1, 1 and one lost to the machine. Task b: one rollout only."""
    async with await RunWriter.open(root, make_config()) as writer:
        await writer.plan([*(make_planned("a", n) for n in range(4)), make_planned("b", 0)])
        machine = Attribution.INFRASTRUCTURE
        await writer.finish(make_rollout("a", 3, score=None, attribution=machine))
        for attempt, score in ((1, 1.0), (0, 0.0), (2, 1.0)):
            await writer.finish(make_rollout("a", attempt, score=score))
        await writer.finish(make_rollout("b", 0))


async def test_a_fixed_group_holds_all_attempts_in_order(tmp_path: Path) -> None:
    await write(tmp_path)
    [group] = read_groups(open_run(tmp_path), FixedSampler(size=4))
    assert group.task_id == "a"
    assert [rollout.attempt for rollout in group.rollouts] == [0, 1, 2, 3]
    assert group.pass_rate == 2 / 3


async def test_a_choosing_sampler_gives_its_choice_and_the_unbiased_rate_beside_it(tmp_path: Path) -> None:
    class OneOfEach:
        """The first that passed and the first that did not."""

        def next(self, pool: Sequence[PoolEntry]) -> More | Done | Drop:
            good = [entry.rollout for entry in pool if entry.score == 1.0]
            bad = [entry.rollout for entry in pool if entry.score == 0.0]
            return Done(group=(good[0], bad[0])) if good and bad else More(count=1)

    await write(tmp_path)
    [group] = read_groups(open_run(tmp_path), OneOfEach())
    assert [rollout.score for rollout in group.rollouts] == [1.0, 0.0]
    assert group.pass_rate == 2 / 3


async def test_an_artifact_past_its_cap_does_not_spare_the_agent_a_failure(tmp_path: Path) -> None:
    async with await RunWriter.open(tmp_path, make_config()) as writer:
        await writer.plan([make_planned("a", n) for n in range(2)])
        await writer.finish(make_rollout("a", 0))
        await writer.finish(make_rollout("a", 1, score=None, outcome=Outcome.VERIFIER_FAILED))
    [group] = read_groups(open_run(tmp_path), FixedSampler(size=2))
    assert group.pass_rate == 1 / 2
