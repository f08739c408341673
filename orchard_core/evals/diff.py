"""How two runs differ: what they were given, and what came of it, with significance."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from orchard_core.evals.attempts import Attempts, count_attempts
from orchard_core.evals.compare import RunComparison, compare
from orchard_core.evals.fisher import fisher_p
from orchard_core.evals.paired import MeanDifference, holm, mean_difference, sign_flip_p
from orchard_core.rollout.store.run import Run
from orchard_core.types.base import Record

DIFF_METHOD = (
    "Over tasks: 95% t interval with two pseudo-tasks (Agresti and Min 2005), two-sided paired sign-flip "
    "permutation test. At each task: Fisher's exact test over its attempts, Holm's correction over tasks"
)


class TaskChange(Record):
    """One task whose pass rate differs."""

    task: str
    """The task's id."""
    left_passed: int
    """Attempts that passed in the first run."""
    left_planned: int
    """Of so many planned there."""
    right_passed: int
    """Attempts that passed in the second run."""
    right_planned: int
    """Of so many planned there."""
    p_value: float
    """Two-sided, this task alone."""
    p_adjusted: float
    """Corrected for all tasks of both runs."""

    @property
    def change(self) -> Fraction:
        """The second run's pass rate less the first's."""
        return Fraction(self.right_passed, self.right_planned) - Fraction(self.left_passed, self.left_planned)


class RunDiff(Record):
    """Two runs side by side."""

    comparison: RunComparison
    """Configuration, versions, seeds, prompts, tasks."""
    threshold: float
    """A score of at least this has passed."""
    tasks: int
    """Tasks of both runs."""
    difference: MeanDifference | None
    """Mean over those of the second's pass rate less the first's, over everything planned."""
    p_value: float | None
    """Two-sided; None with fewer than two tasks."""
    better: tuple[TaskChange, ...]
    """Tasks at which the second is better, the largest change first."""
    worse: tuple[TaskChange, ...]
    """Tasks at which the second is worse, likewise."""
    method: str = DIFF_METHOD
    """How intervals and p-values are made."""


def diff_runs(left: Run, right: Run, *, threshold: float = 1.0) -> RunDiff:
    """Read both journals; shards are not opened."""
    ours, theirs = _by_task(left, threshold), _by_task(right, threshold)
    both = [task for task in ours if task in theirs]
    rates = [_rate(theirs[task]) - _rate(ours[task]) for task in both]
    changes = _changes({task: (ours[task], theirs[task]) for task in both})
    return RunDiff(
        comparison=compare(left, right),
        threshold=threshold,
        tasks=len(both),
        difference=mean_difference([float(rate) for rate in rates]),
        p_value=sign_flip_p(rates) if len(rates) > 1 else None,
        better=tuple(sorted((item for item in changes if item.change > 0), key=lambda item: -item.change)),
        worse=tuple(sorted((item for item in changes if item.change < 0), key=lambda item: item.change)),
    )


def _by_task(run: Run, threshold: float) -> dict[str, Attempts]:
    state = run.state()
    counts = count_attempts(state.planned.values(), state.finished.values(), threshold=threshold)
    return {item.task: item for item in counts}


def _rate(attempts: Attempts) -> Fraction:
    return Fraction(attempts.passed, attempts.planned)


def _changes(pairs: Mapping[str, tuple[Attempts, Attempts]]) -> list[TaskChange]:
    p_values = [fisher_p(b.passed, b.planned, a.passed, a.planned) for a, b in pairs.values()]
    adjusted = holm(p_values)
    return [
        TaskChange(
            task=task,
            left_passed=a.passed,
            left_planned=a.planned,
            right_passed=b.passed,
            right_planned=b.planned,
            p_value=p,
            p_adjusted=p_all if p_all is not None else p,
        )
        for (task, (a, b)), p, p_all in zip(pairs.items(), p_values, adjusted, strict=True)
        if _rate(a) != _rate(b)
    ]
