"""Why two runs may differ."""

from __future__ import annotations

from orchard_core.rollout.config import Difference, differences
from orchard_core.rollout.store.entry import Planned
from orchard_core.rollout.store.run import Run
from orchard_core.types.base import Record


class RunComparison(Record):
    """Everything recorded that differs between two runs."""

    left: str
    """The first run's directory."""
    right: str
    """The second run's directory."""
    config: tuple[Difference, ...]
    """Fields of the resolved configuration, versions and seeds included."""
    only_left: tuple[str, ...]
    """Tasks that only the first has."""
    only_right: tuple[str, ...]
    """Tasks that only the second has."""
    changed_tasks: tuple[str, ...]
    """Tasks of both whose content differs."""
    changed_prompts: tuple[str, ...]
    """Tasks of both whose instruction, or first request to the model, differs."""
    changed_seeds: int
    """Attempts of both that were given another seed."""


def compare(left: Run, right: Run) -> RunComparison:
    """Read both journals; shards are not opened."""
    a, b = _by_attempt(left.planned()), _by_attempt(right.planned())
    tasks_a, tasks_b = {task for task, _ in a}, {task for task, _ in b}
    both = sorted(a.keys() & b.keys())
    first_a, first_b = _first_requests(left), _first_requests(right)
    prompts = {key[0] for key in both if a[key].prompt != b[key].prompt}
    prompts |= {task for task in first_a.keys() & first_b.keys() if first_a[task] != first_b[task]}
    return RunComparison(
        left=str(left.root),
        right=str(right.root),
        config=tuple(item for item in differences(left.config, right.config) if item.field != "created_at"),
        only_left=tuple(sorted(tasks_a - tasks_b)),
        only_right=tuple(sorted(tasks_b - tasks_a)),
        changed_tasks=tuple(sorted({key[0] for key in both if a[key].digest != b[key].digest})),
        changed_prompts=tuple(sorted(prompts)),
        changed_seeds=sum(a[key].seed != b[key].seed for key in both),
    )


def _by_attempt(planned: list[Planned]) -> dict[tuple[str, int], Planned]:
    return {(item.task, item.attempt): item for item in planned}


def _first_requests(run: Run) -> dict[str, frozenset[str]]:
    seen: dict[str, set[str]] = {}
    for entry in run.finished():
        if entry.prompt_digest:
            seen.setdefault(entry.task, set()).add(entry.prompt_digest)
    return {task: frozenset(digests) for task, digests in seen.items()}
