"""Splits by task: near-duplicate tasks on one side, the same result every time.

How a task gets its split. Near-duplicate tasks form a group (similar/tasks.py). A group draws a number in
[0, 1) from the hash of the seed and of its smallest-hashed task, and the shares, laid end to end in order of
the splits' names, say which split has that number. So far nothing depends on the other groups: a task that is
added moves no other, unless it links two groups or is its group's new smallest. Where the draw leaves a split
further than `tolerance` from its share, groups move from fuller to emptier splits until no move helps, those
first that a second hash names; with thousands of tasks that is rare, with few it is what makes shares met.
Where nothing at all may move, `keep` an earlier result.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from orchard_core.datasets.similar.index import NEAR
from orchard_core.datasets.similar.tasks import TaskKey, TaskText, near_tasks
from orchard_core.errors import ConfigError

TOLERANCE = 0.01
"""How far a split may be from its share before groups are moved, as a share of all tasks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Splits:
    """Which task belongs to which split."""

    of: Mapping[TaskKey, str]
    """The split of each task, by `TaskText.key`."""
    asked: Mapping[str, float]
    """The share of each split that was asked for; they sum to 1."""
    tasks: Mapping[str, int]
    """Tasks that each split got."""
    groups: int
    """Groups of the same or nearly the same task, those of one task included."""
    near: tuple[tuple[TaskKey, ...], ...] = ()
    """The groups of two and more tasks."""
    notes: tuple[str, ...] = ()
    """What could not be met, a sentence each: a group larger than a split, a split without a task."""

    @property
    def reached(self) -> dict[str, float]:
        """The share of all tasks that each split got; 0 for all of no tasks."""
        return {name: count / max(len(self.of), 1) for name, count in self.tasks.items()}

    def split(self, task: TaskText) -> str:
        """The split of a task that was among those assigned; KeyError for another."""
        return self.of[task.key]


def assign_splits(
    tasks: Iterable[TaskText],
    shares: Mapping[str, float],
    *,
    seed: int = 0,
    near: float | None = NEAR,
    tolerance: float = TOLERANCE,
    keep: Mapping[TaskKey, str] | None = None,
) -> Splits:
    """Give every task a split; the order and repeats of `tasks` do not matter, nor the order of `shares`.

    Shares are weights: 8 and 2 are 0.8 and 0.2. `near` is the resemblance from which tasks are near
    duplicates, None to group by digest and `TaskText.group` alone. Tasks in `keep` stay in their split, and
    their near duplicates go there. Raises ConfigError for shares that are no shares, and for a kept split
    that has none.
    """
    asked = _shares(shares)
    keyed = near_tasks(tasks, near)
    kept = _kept(keep or {}, asked)
    groups = [_Group.of(keys, seed, kept) for keys in keyed]
    total = sum(len(group.tasks) for group in groups)
    drawn: dict[str, list[_Group]] = {name: [] for name in asked}
    for group in groups:
        drawn[group.kept[0] if group.kept else _drawn(asked, group.place)].append(group)
    _balance(drawn, asked, total, tolerance)
    return Splits(
        of={key: name for name, held in drawn.items() for group in held for key in group.tasks},
        asked=asked,
        tasks={name: _size(held) for name, held in drawn.items()},
        groups=len(groups),
        near=tuple(group.tasks for group in groups if len(group.tasks) > 1),
        notes=tuple(_notes(drawn, asked, groups)),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Group:
    tasks: tuple[TaskKey, ...]
    place: float
    """Where it falls among the shares, in [0, 1)."""
    turn: float
    """When it is moved, should groups have to be: the smallest first."""
    kept: tuple[str, ...]
    """The splits that its kept tasks have; the first one is the group's."""

    @classmethod
    def of(cls, tasks: tuple[TaskKey, ...], seed: int, kept: Mapping[TaskKey, str]) -> _Group:
        return cls(
            tasks,
            min(_draw("place", seed, key) for key in tasks),
            min(_draw("turn", seed, key) for key in tasks),
            tuple(dict.fromkeys(kept[key] for key in tasks if key in kept)),
        )


def _draw(purpose: str, seed: int, key: TaskKey) -> float:
    told = "\0".join((purpose, str(seed), *key)).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.sha256(told).digest()[:6], "big") / (1 << 48)


def _shares(shares: Mapping[str, float]) -> dict[str, float]:
    total = sum(shares.values())
    if not shares or not 0 < total < float("inf") or min(shares.values()) < 0 or not all(shares):
        raise ConfigError(
            f"shares of splits that cannot be had: {dict(shares)!r}",
            hint="name each split and its share, such as train: 0.9 and test: 0.1",
        )
    return {name: shares[name] / total for name in sorted(shares)}


def _kept(keep: Mapping[TaskKey, str], asked: Mapping[str, float]) -> Mapping[TaskKey, str]:
    strange = sorted(set(keep.values()) - set(asked))
    if strange:
        raise ConfigError(
            f"tasks are to stay in {', '.join(strange)}, and the splits are {', '.join(asked)}",
            hint="give each kept split a share, which may be 0",
        )
    return keep


def _drawn(asked: Mapping[str, float], place: float) -> str:
    given = [name for name, share in asked.items() if share]
    reach = 0.0
    for name in given:
        reach += asked[name]
        if place < reach:
            return name
    return given[-1]


def _size(groups: Iterable[_Group]) -> int:
    return sum(len(group.tasks) for group in groups)


def _balance(
    drawn: dict[str, list[_Group]], asked: Mapping[str, float], total: int, tolerance: float
) -> None:
    """Move groups while a split is off by more than `tolerance` and a move lessens the sum of squared errors,
    which ends it."""
    for held in drawn.values():
        held.sort(key=lambda group: (group.turn, group.tasks))
    over = {name: _size(held) - asked[name] * total for name, held in drawn.items()}
    while max(map(abs, over.values())) > tolerance * total:
        moved = _best_move(drawn, over, asked)
        if moved is None:
            return
        group, source, target = moved
        drawn[source].remove(group)
        drawn[target].append(group)
        drawn[target].sort(key=lambda each: (each.turn, each.tasks))
        over[source] -= len(group.tasks)
        over[target] += len(group.tasks)


def _best_move(
    drawn: Mapping[str, Sequence[_Group]], over: Mapping[str, float], asked: Mapping[str, float]
) -> tuple[_Group, str, str] | None:
    """A group of the fullest split that has one to give, for the emptiest split."""
    for source in sorted(over, key=lambda name: -over[name]):
        for target in sorted((name for name in over if asked[name]), key=lambda name: over[name]):
            room = over[source] - over[target]
            for group in drawn[source]:
                if len(group.tasks) < room and not group.kept:
                    return group, source, target
    return None


def _notes(
    drawn: Mapping[str, Sequence[_Group]], asked: Mapping[str, float], groups: Sequence[_Group]
) -> Iterable[str]:
    total = _size(groups)
    largest = max((len(group.tasks) for group in groups), default=0)
    for name, share in asked.items():
        if share and groups and not drawn[name]:
            yield f"split {name} has no task: {total} tasks are {len(groups)} groups of near duplicates"
        elif share and largest > max(1, share * total):
            yield (
                f"a group of {largest} near-duplicate tasks is larger than split {name} should be "
                f"({share * total:g} of {total} tasks)"
            )
    for group in groups:
        if len(group.kept) > 1:
            yield (
                f"kept tasks of {', '.join(group.kept)} are near duplicates now: all went to "
                f"{group.kept[0]}, with {'/'.join(group.tasks[0])}"
            )
