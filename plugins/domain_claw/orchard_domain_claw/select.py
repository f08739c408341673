"""Choosing some of the tasks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from itertools import chain, zip_longest

from orchard_core import ConfigError
from orchard_domain_claw.source import ClawTask

_LEVEL = re.compile(r"L[1-9]", re.IGNORECASE)


def select(tasks: Sequence[ClawTask], terms: str) -> list[ClawTask]:
    """The tasks that the terms name, in their order. Raises ConfigError for a term that names none."""
    named: list[str] = []
    levels: set[str] = set()
    count: int | None = None
    for term in filter(None, (term.strip() for term in terms.split(","))):
        if term.isdecimal():
            count = int(term)
        elif _LEVEL.fullmatch(term):
            levels.add(term.upper())
        else:
            _check(tasks, term)
            named.append(term)
    chosen = [
        task
        for task in tasks
        if (not named or any(_is(task, term) for term in named))
        and (not levels or task.toml.level.upper() in levels)
    ]
    if not chosen:
        raise ConfigError(f"claw-bench: {terms!r} leaves no task", hint="orchard tasks list claw-bench")
    return chosen if count is None else spread(chosen)[:count]


def spread(tasks: Iterable[ClawTask]) -> list[ClawTask]:
    """The tasks dealt out over the domains in turn, so that any beginning covers many domains."""
    by_domain: dict[str, list[ClawTask]] = {}
    for task in tasks:
        by_domain.setdefault(task.toml.domain, []).append(task)
    rounds = zip_longest(*by_domain.values())
    return [task for task in chain.from_iterable(rounds) if task is not None]


def _is(task: ClawTask, term: str) -> bool:
    return term == task.toml.domain or fnmatchcase(task.toml.id, term)


def _check(tasks: Sequence[ClawTask], term: str) -> None:
    if any(_is(task, term) for task in tasks):
        return
    words = {name for task in tasks for name in (task.toml.domain, task.toml.id)}
    close = get_close_matches(term, words, n=3, cutoff=0.5)
    guess = f"; did you mean {' or '.join(close)}?" if close else ""
    raise ConfigError(
        f"claw-bench has no domain, level or task {term!r}{guess}", hint="orchard tasks list claw-bench"
    )
