"""Groups of rollouts of one task, read from a run."""

from __future__ import annotations

from collections.abc import Iterator

from orchard_core.rollout.pool import Pool
from orchard_core.rollout.sampler import Done, GroupSampler
from orchard_core.rollout.store.run import Run
from orchard_core.types.rollout import Attribution, RolloutGroup


def read_groups(run: Run, sampler: GroupSampler) -> Iterator[RolloutGroup]:
    """The complete groups of a run, one task at a time, in the order of its plan.

    A sampler is pure, so the one that the run was made with chooses the same members again. Tasks of which
    it wants more, or which it gave up, give no group.
    """
    pool = Pool()
    finished = {entry.id: entry for entry in run.finished()}
    for entry in finished.values():
        pool.add(entry)
    for task in dict.fromkeys(item.task for item in run.planned()):
        entries = pool.entries(task)
        decision = sampler.next(entries)
        if not isinstance(decision, Done):
            continue
        # Without a score by the agent's own doing, such as an artifact past its cap, has not passed.
        scores = [
            entry.score or 0.0
            for entry in entries
            if entry.score is not None or finished[entry.rollout].attribution is Attribution.AGENT
        ]
        yield RolloutGroup(
            task_id=task,
            rollouts=tuple(run.load(finished[name]) for name in decision.group),
            pass_rate=sum(score > 0 for score in scores) / len(scores) if scores else None,
        )
