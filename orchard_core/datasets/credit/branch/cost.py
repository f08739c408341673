"""What measuring a trajectory is expected to take, from what it took itself."""

from __future__ import annotations

from orchard_core.datasets.credit.branch.design import expected_rollouts, most_rollouts
from orchard_core.datasets.credit.branch.options import BranchOptions
from orchard_core.datasets.credit.estimator import CostPlan
from orchard_core.types.rollout import Rollout


def branch_plan(rollout: Rollout, turns: int, options: BranchOptions) -> CostPlan:
    """Continuations start half way on average and are as long as what was recorded; replayed calls are free,
    and so are the passes that save the states."""
    expected = expected_rollouts(turns, options)
    halves = expected / 2
    usage = rollout.usage
    return CostPlan(
        items=1,
        calls=round(halves * len(rollout.trajectory.calls)),
        input_tokens=round(halves * (usage.total - usage.output)),
        output_tokens=round(halves * usage.output),
        rollouts=expected,
        rollouts_at_most=most_rollouts(turns, options),
        cost_usd=None if rollout.cost_usd is None else halves * rollout.cost_usd,
    )
