"""What is wrong with the rows of a dataset taken together: ids that come twice, tasks in two splits."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterator
from hashlib import blake2b
from itertools import pairwise

from orchard_core.datasets.similar.tasks import TaskKey, TaskText, near_tasks


class Ids:
    """Ids by 8 bytes of their hash: a million take 8 MB."""

    def __init__(self) -> None:
        self._hashes = array("Q")

    def add(self, name: str) -> None:
        """One more row."""
        self._hashes.append(self._hash(name))

    def twice(self) -> frozenset[int]:
        """Hashes that came more than once."""
        ordered = sorted(self._hashes)
        return frozenset(one for one, other in pairwise(ordered) if one == other)

    @staticmethod
    def _hash(name: str) -> int:
        return int.from_bytes(blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest())

    def is_twice(self, name: str, twice: frozenset[int]) -> bool:
        """Whether this id is among those."""
        return self._hash(name) in twice


class TaskPlaces:
    """In which splits each task stands."""

    def __init__(self) -> None:
        self._splits: dict[TaskKey, dict[str, str]] = defaultdict(dict)
        self._tasks: dict[TaskKey, TaskText] = {}

    def add(self, task: TaskText, *, split: str, row: str) -> None:
        """A row of a task. Rows that name no task are passed over."""
        if task.task or task.text:
            self._splits[task.key].setdefault(split, row)
            self._tasks.setdefault(task.key, task)

    def faults(self, *, near: float | None) -> Iterator[str]:
        """A sentence for each task, and each group of tasks at least so alike, that stands in two splits."""
        for key, splits in self._splits.items():
            if len(splits) > 1:
                yield f"the task {_name(key)} stands in {_list(splits)}"
        for group in near_tasks(self._tasks.values(), near) if self._several() else ():
            splits = {split: row for key in group for split, row in self._splits[key].items()}
            if len(splits) > 1 and all(len(self._splits[key]) == 1 for key in group):
                names = ", ".join(_name(key) for key in group[:4])
                yield f"the nearly equal tasks {names} stand in {_list(splits)}"

    def _several(self) -> bool:
        return len({split for splits in self._splits.values() for split in splits}) > 1


def _name(key: TaskKey) -> str:
    return f"{key[0]}/{key[1]}" if key[0] else key[1]


def _list(splits: dict[str, str]) -> str:
    return " and ".join(f"{split} (row {row})" for split, row in sorted(splits.items()))
