"""One rollout of the one task of a test's parts."""

from __future__ import annotations

from dataclasses import replace

from orchard_core import Attribution, Outcome, Rollout, Task
from orchard_core.rollout.attempt import run_rollout
from orchard_core.rollout.parts import RolloutParts
from orchard_core.rollout.settings import PhaseLimits, RolloutSettings

from .harnesses import Acting, Body

QUICK = RolloutSettings(phases=PhaseLimits(cancel_s=0.2, close_s=2, probe_s=2))


def the_task(parts: RolloutParts, **changes: object) -> Task:
    task = next(iter(parts.taskset.tasks()))
    return task.model_copy(update=changes)


async def run(parts: RolloutParts, **changes: object) -> Rollout:
    return await run_rollout(the_task(parts, **changes), parts)


async def run_body(parts: RolloutParts, body: Body, **changes: object) -> Rollout:
    return await run(replace(parts, harness=Acting(body)), **changes)


def summary(rollout: Rollout) -> tuple[Outcome, Attribution]:
    return rollout.outcome, rollout.attribution
