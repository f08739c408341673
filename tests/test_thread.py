"""The whole thread: a generated task in an isolated sandbox, driven by react through the gateway, verified in
a fresh sandbox, and kept."""

from __future__ import annotations

from pathlib import Path

from orchard_core import Outcome, Phase, Rollout, StopReason
from orchard_core.rollout.front import run_rollouts
from orchard_core.rollout.store.run import open_run

FAMILIES = 8
"""Tasks of workbench that are of a family each."""


async def rollouts(
    out: Path, model: str, count: int, *, harness: str = "react", attempts: int = 1
) -> list[Rollout]:
    """A run of `count` workbench tasks in local sandboxes, by id."""
    run = run_rollouts(
        f"workbench:{count}", harness=harness, model=model, sandbox="local", out=out, attempts=attempts
    )
    return sorted([rollout async for rollout in run], key=lambda rollout: rollout.id)


def scores(found: list[Rollout]) -> list[float | None]:
    """The score of each."""
    return [rollout.reward.score if rollout.reward else None for rollout in found]


async def test_the_oracle_solves_one_task_of_every_family_and_all_of_it_is_kept(tmp_path: Path) -> None:
    found = await rollouts(tmp_path / "run", "oracle", FAMILIES)
    assert scores(found) == [1.0] * FAMILIES, [rollout.reward for rollout in found]
    for rollout in found:
        assert rollout.outcome is Outcome.COMPLETED
        assert rollout.result is not None
        assert rollout.result.stop is StopReason.SUBMITTED
        assert rollout.result.malformed_calls == 0
        bases = [call.messages.base for call in rollout.trajectory.calls]
        assert bases == [None, *range(rollout.result.turns - 1)]
        assert rollout.cost_usd == 0.0
        assert min(rollout.usage.input, rollout.usage.output) > 0
        assert {Phase.CREATE, Phase.AGENT, Phase.VERIFY} <= {timing.phase for timing in rollout.timings}
    assert sorted(open_run(tmp_path / "run"), key=lambda rollout: rollout.id) == found


async def test_it_works_in_the_text_protocol_as_well(tmp_path: Path) -> None:
    assert scores(await rollouts(tmp_path / "run", "oracle", 3, harness="react:text")) == [1.0] * 3


async def test_the_noisy_oracle_fails_some_and_the_same_ones_again(tmp_path: Path) -> None:
    first = await rollouts(tmp_path / "first", "noisy-oracle:0.5", 4, attempts=2)
    assert set(scores(first)) == {0.0, 1.0}
    again = await rollouts(tmp_path / "again", "noisy-oracle:0.5", 4, attempts=2)
    assert [rollout.id for rollout in again] == [rollout.id for rollout in first]
    assert scores(again) == scores(first)
