"""Which tasks of a task set are run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase

from orchard_core.types.task import Task


def selection(globs: Sequence[str], limit: int | None) -> Callable[[Task], bool]:
    """The first `limit` tasks whose id matches one of the globs, all without any; for one pass only."""
    left = [limit]

    def select(task: Task) -> bool:
        if globs and not any(fnmatchcase(task.id, pattern) for pattern in globs):
            return False
        if left[0] is None:
            return True
        left[0] -= 1
        return left[0] >= 0

    return select
