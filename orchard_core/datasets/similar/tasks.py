"""Near-duplicate tasks.

Tasks with near-duplicate instructions count as one, with one exception. A generator writes many tasks with
one text: the same words over other files, or other numbers and names in the same words. Where one task set
gives such tasks *with digests of everything that defines them, and the digests differ*, the set itself tells
them apart, and so do we. What lacks a digest, or comes from another set, is not told apart by this.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from orchard_core.datasets.similar.groups import Unions, near_links
from orchard_core.datasets.similar.index import NEAR
from orchard_core.datasets.similar.words import LIMIT, normal
from orchard_core.types.dataset import DatasetRow, task_digest
from orchard_core.types.task import Task

TaskKey: TypeAlias = tuple[str, str]
"""Task set, without an argument that is only a count, and task id; see `TaskText.key`."""
_COUNTED = re.compile(r":\d+\Z")
_WORD = re.compile(r"[^\W_]")
_MARKS = ".,;:!?()\"'"
_PLAIN = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskText:
    """What is known of a task without its task set."""

    taskset: str = ""
    """Name of the task set as the user gave it; empty: unknown."""
    task: str = ""
    """The task's id; empty: unknown."""
    text: str = ""
    """The instruction."""
    digest: str = ""
    """Hash of everything that defines the task; empty: unknown."""
    group: str = ""
    """Whatever else ties tasks together, such as a repository or a site; empty: nothing."""

    @property
    def key(self) -> TaskKey:
        """What names the task: `workbench:16` and `workbench:400` are one set, for an argument that is a
        number says how many, not which. A task without an id goes by the hash of its normalised text."""
        return set_name(self.taskset), self.task or hashlib.sha256(normal(self.text).encode()).hexdigest()


def task_of(row: DatasetRow) -> TaskText:
    """The task of a row; its digest is what the row's provenance tells as `task_digest`."""
    return TaskText(
        taskset=row.taskset,
        task=row.task,
        text=row.task_text,
        digest=task_digest(row.provenance),
    )


def text_of(task: Task) -> TaskText:
    """The same of a task that a task set gave."""
    return TaskText(taskset=task.taskset, task=task.id, text=task.instruction, digest=task.digest)


def set_name(taskset: str) -> str:
    """The set behind the user's words: without a count."""
    return _COUNTED.sub("", taskset)


def template(text: str) -> str:
    """The words that a generator does not fill in, in order: those of letters alone. A word with a digit or a
    mark inside, such as `req-87650`, `[umber]` or `routines.py`, is a value and stands as one sign."""
    return " ".join(_sign(word) for word in text[:LIMIT].split())


def _sign(word: str) -> str:
    if not word.isalpha():
        word = word.strip(_MARKS)
        if word and not _PLAIN.match(word):
            return "\0"
    return word.casefold()


def told_apart(one: TaskText, other: TaskText) -> bool:
    """Whether one task set itself says that two tasks of one template are different tasks."""
    return (
        bool(one.digest)
        and bool(other.digest)
        and one.digest != other.digest
        and set_name(one.taskset) == set_name(other.taskset)
        and template(one.text) == template(other.text)
    )


def near_tasks(tasks: Iterable[TaskText], threshold: float | None = NEAR) -> list[tuple[TaskKey, ...]]:
    """The tasks' keys in groups of the same or nearly the same task, also of one alone; by key.

    Together go tasks of one digest, of one `group`, and, unless `threshold` is None, those that a chain of
    near-duplicate texts links, but for what their set tells apart.
    """
    known = _Known(tasks)
    joined = Unions(len(known.keys))
    for ties in (known.by_digest, known.by_group):
        for members in ties.values():
            _chain(joined, members)
    if threshold is not None:
        sayings = _sayings(known)
        for saying in sayings:
            _join(joined, saying, saying)
        links = near_links([each.text for each in sayings], threshold, apart=_labels(sayings))
        for one, other in links:
            _join(joined, sayings[one], sayings[other])
    return [tuple(known.keys[member] for member in group) for group in joined.groups()]


class _Known:
    """Tasks by number, in the order of their keys, and what ties them."""

    def __init__(self, tasks: Iterable[TaskText]):
        seen: dict[TaskKey, dict[TaskText, None]] = {}
        for task in tasks:
            seen.setdefault(task.key, {}).setdefault(task)
        self.keys = sorted(seen)
        self.told = [(number, task) for number, key in enumerate(self.keys) for task in seen[key]]
        self.by_digest: dict[str, list[int]] = {}
        self.by_group: dict[str, list[int]] = {}
        for number, task in self.told:
            if task.digest:
                self.by_digest.setdefault(task.digest, []).append(number)
            if task.group:
                self.by_group.setdefault(task.group, []).append(number)


@dataclass(slots=True)
class _Saying:
    """One text within one task set, and the tasks that have it."""

    text: str
    template: tuple[str, str] | None
    """Task set and template; None when no digest tells its tasks apart anyhow."""
    members: list[int]
    unknown: list[int]
    """Those without a digest."""


def _sayings(known: _Known) -> list[_Saying]:
    found: dict[tuple[str, str], _Saying] = {}
    for number, task in known.told:
        if not _WORD.search(task.text):
            continue
        name = set_name(task.taskset)
        saying = found.setdefault((name, task.text), _Saying(task.text, None, [], []))
        saying.members.append(number)
        if not task.digest:
            saying.unknown.append(number)
        elif saying.template is None:
            saying.template = (name, template(task.text))
    return list(found.values())


def _labels(sayings: Sequence[_Saying]) -> list[int]:
    """A number for each template whose set tells all tasks of this text apart, else -1."""
    numbers: dict[tuple[str, str], int] = {}
    return [
        -1 if each.template is None or each.unknown else numbers.setdefault(each.template, len(numbers))
        for each in sayings
    ]


def _join(joined: Unions, one: _Saying, other: _Saying) -> None:
    """Near texts: every task of the one with every task of the other, but for those that are told apart."""
    if one is not other and (one.template is None or one.template != other.template):
        _chain(joined, [*one.members, *other.members])
        return
    if one.unknown or other.unknown:
        mine = [*one.unknown, *other.unknown]
        if one.unknown:
            _chain(joined, [one.unknown[0], *other.members])
        if other.unknown:
            _chain(joined, [other.unknown[0], *one.members])
        _chain(joined, mine)


def _chain(joined: Unions, members: Sequence[int]) -> None:
    for member in members[1:]:
        joined.join(members[0], member)
