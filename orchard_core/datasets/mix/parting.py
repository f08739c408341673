"""Which split each row belongs to, by its task."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from orchard_core.datasets.mix.recipe import MixRecipe


def part_rows(base: sqlite3.Connection, recipe: MixRecipe) -> Sequence[str]:
    """Name each row's split; gives what could not be met, a sentence each. Raises ConfigError."""
    shares = recipe.splits.shares
    if len(shares) == 1:
        base.execute("UPDATE rows SET part = ? WHERE gone IS NULL", tuple(shares))
        return ()
    from orchard_core.datasets.similar.tasks import TaskText
    from orchard_core.datasets.splits import assign_splits

    base.execute("CREATE INDEX by_own_task ON rows (taskset, name) WHERE gone IS NULL")
    found = base.execute(
        "SELECT taskset, name, task, text, digest FROM tasks WHERE EXISTS (SELECT 1 FROM rows WHERE "
        "rows.taskset = tasks.taskset AND rows.name = tasks.name AND gone IS NULL) ORDER BY taskset, name"
    )
    tasks = {
        (taskset, name): TaskText(taskset=taskset, task=task, text=text, digest=digest)
        for taskset, name, task, text, digest in found
    }
    near = recipe.splits.similar_tasks
    splits = assign_splits(tasks.values(), shares, seed=recipe.seed, near=near)
    base.executemany(
        "UPDATE rows SET part = ? WHERE taskset = ? AND name = ? AND gone IS NULL",
        ((splits.split(task), *key) for key, task in tasks.items()),
    )
    return splits.notes
