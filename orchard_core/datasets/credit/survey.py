"""What assigning credit would take, found out before anything is spent."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from orchard_core.datasets.credit.candidates import Candidate, Standing, read_item
from orchard_core.datasets.credit.estimator import CostPlan, Estimator
from orchard_core.datasets.credit.head import CreditHead
from orchard_core.datasets.credit.refusal import Refusals
from orchard_core.datasets.credit.target import Target, is_done
from orchard_core.types.credit import Credit


@dataclass(slots=True, kw_only=True)
class Survey:
    """Counts, and the expected cost of what is still to be done."""

    resolved: int = 0
    """Rollouts that passed."""
    unresolved: int = 0
    """Rollouts that did not."""
    done: int = 0
    """Of both, those that have a credit already."""
    left_out: Counter[str] = field(default_factory=Counter)
    """Rollouts that get none, by the reason."""
    refused: Mapping[Path, str] = field(default_factory=dict)
    """Runs that the estimator refuses as a whole, and why; their rollouts are not counted."""
    plan: CostPlan = field(default_factory=CostPlan)
    """What the rest is expected to take."""
    spent_usd: float | None = 0.0
    """US dollars that credits which are there have cost; None: unknown."""

    @property
    def todo(self) -> int:
        """Rollouts that have no credit yet."""
        return self.resolved + self.unresolved - self.done

    @property
    def total_usd(self) -> float | None:
        """US dollars of it all, spent and expected."""
        if self.spent_usd is None or self.plan.cost_usd is None:
            return None
        return self.spent_usd + self.plan.cost_usd


async def survey(
    targets: Sequence[Target],
    estimator: Estimator,
    head: CreditHead,
    *,
    threshold: float,
    retry_failed: bool = False,
    on_look: Callable[[Survey], None] = lambda _: None,
) -> Survey:
    """Look at every rollout; `on_look` is called after each.

    A cell that the estimator refuses is left out. Raises CreditRefused when it refuses all, ConfigError when
    credits that are there have other settings, and what the estimator's `plan` raises.
    """
    found = Survey()
    refusals = Refusals(estimator=estimator, head=head, threshold=threshold, retry_failed=retry_failed)
    for target in targets:
        if await refusals.leave_out(target):
            continue
        before = target.before(head)
        for candidate in target.candidates():
            await _look(found, candidate, before, estimator, threshold, retry_failed=retry_failed)
            on_look(found)
    refusals.check(len(targets))
    found.refused = refusals.reasons
    return found


async def _look(
    found: Survey,
    candidate: Candidate,
    before: Mapping[str, Credit],
    estimator: Estimator,
    threshold: float,
    *,
    retry_failed: bool,
) -> None:
    standing = candidate.standing(threshold)
    if standing is Standing.LEFT_OUT:
        found.left_out[f"no score ({candidate.ended})"] += 1
        return
    credit = before.get(candidate.rollout)
    if credit is not None:
        known = found.spent_usd is not None and credit.cost_usd is not None
        found.spent_usd = (found.spent_usd or 0.0) + (credit.cost_usd or 0.0) if known else None
    done = is_done(candidate, credit, retry_failed=retry_failed)
    if not done and standing is Standing.UNRESOLVED:
        item = await asyncio.to_thread(read_item, candidate)
        if isinstance(item, str):
            found.left_out[item] += 1
            return
        found.plan += await estimator.plan([item])
    found.done += done
    found.resolved += standing is Standing.RESOLVED
    found.unresolved += standing is Standing.UNRESOLVED
