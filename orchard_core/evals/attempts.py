"""The attempts at one task, counted for both denominators."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from orchard_core.evals.statistics import Estimate, estimate
from orchard_core.rollout.store.entry import Finished, Planned
from orchard_core.types.base import Record
from orchard_core.types.rollout import Attribution


def is_valid(entry: Finished) -> bool:
    """It says something about the agent: it was scored, or ended by the agent's own doing."""
    return entry.score is not None or entry.attribution is Attribution.AGENT


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempts:
    """Counts of one task."""

    task: str
    """The task's id."""
    planned: int
    """Attempts planned; what is unfinished or failed counts as not passed."""
    valid: int
    """Attempts that say something about the agent."""
    passed: int
    """Attempts with a score of at least the threshold."""


def count_attempts(
    planned: Iterable[Planned], finished: Iterable[Finished], *, threshold: float
) -> list[Attempts]:
    """One count a task, in the order of the plan."""
    sizes: dict[str, int] = {}
    for item in planned:
        sizes[item.task] = sizes.get(item.task, 0) + 1
    valid, passed = dict.fromkeys(sizes, 0), dict.fromkeys(sizes, 0)
    for entry in finished:
        if entry.task in sizes:
            valid[entry.task] += is_valid(entry)
            passed[entry.task] += entry.score is not None and entry.score >= threshold
    return [
        Attempts(task=task, planned=size, valid=valid[task], passed=passed[task])
        for task, size in sizes.items()
    ]


class Rate(Record):
    """One figure under both denominators."""

    planned: Estimate | None
    """Over everything planned: what failed for any reason has not passed."""
    valid: Estimate | None
    """Over what says something about the agent; tasks with too few such attempts are left out."""


def rate(attempts: Iterable[Attempts], figure: Callable[[int, int], float | None]) -> Rate:
    """A figure of (attempts, passes), averaged over tasks; tasks for which it does not exist are left out."""
    tasks = list(attempts)
    return Rate(
        planned=_mean(figure(task.planned, task.passed) for task in tasks),
        valid=_mean(figure(task.valid, task.passed) for task in tasks if task.valid),
    )


def _mean(values: Iterable[float | None]) -> Estimate | None:
    return estimate([value for value in values if value is not None])
