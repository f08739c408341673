"""What came out of a run, in a few lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from orchard_core.cli.display.words import clock, count, money
from orchard_core.evals.clean import clean_line
from orchard_core.rollout.store.entry import Finished
from orchard_core.rollout.store.run import Run, open_run
from orchard_core.types.base import Record

SHOWN = 5
"""Problems of the task set, and kinds of error, that are shown."""


_HINT = "\n  hint: "


class RunSummary(Record):
    """A whole run, earlier starts included."""

    run: str
    """The run directory."""
    planned: int
    """Rollouts it consists of."""
    finished: int
    """Of these, finished."""
    scored: int
    """Of these, with a score."""
    mean_score: float | None
    """Mean over those with a score; None when there is none."""
    outcomes: Mapping[str, int]
    """How they ended, the most frequent first."""
    tokens: int
    """Tokens of all calls, those of repeated and stopped tries included."""
    cost_usd: float | None
    """US dollars for them; None when a call's cost is unknown."""
    seconds: float
    """From the first start to the last end, earlier tries included."""
    rollout_retries: int = 0
    """Times a finished rollout was started again."""
    call_retries: int = 0
    """Times the gateway sent a model call again."""
    failures: tuple[str, ...] = ()
    """Each class of error, the most frequent first: how often, and what the first of them said."""
    problems: tuple[str, ...] = ()
    """Tasks and keys that the task set left out or ignored, a line each."""

    @property
    def missing(self) -> int:
        """Planned, not finished."""
        return self.planned - self.finished

    @classmethod
    def of(cls, root: Path) -> Self:
        """Read it from the journal. Raises RunNotFound."""
        run = open_run(root)
        state = run.state()
        entries = list(state.finished.values())
        scores = [entry.score for entry in entries if entry.score is not None]
        spent = state.spent()
        return cls(
            run=str(root),
            planned=len(state.planned),
            finished=len(entries),
            scored=len(scores),
            mean_score=sum(scores) / len(scores) if scores else None,
            outcomes=dict(Counter(entry.outcome.value for entry in entries).most_common()),
            tokens=spent.usage.total,
            cost_usd=spent.cost_usd,
            seconds=state.span_s(entries),
            rollout_retries=sum(entry.tries - 1 for entry in entries),
            call_retries=spent.call_retries,
            failures=_failures(run, entries),
            problems=run.config.problems,
        )

    def lines(self) -> list[str]:
        """For people."""
        mean = "none" if self.mean_score is None else f"{self.mean_score:.3f}"
        lines = [
            f"run        {self.run}",
            f"rollouts   {self.planned} planned, {self.finished} finished, {self.scored} scored",
            f"reward     {mean} (mean over the {self.scored} scored)",
            f"outcomes   {', '.join(f'{name} {number}' for name, number in self.outcomes.items()) or '-'}",
            f"spent      {clock(self.seconds)}, {count(self.tokens)} tokens, {money(self.cost_usd)}",
            *self._retried(),
            *_labelled("failed", self.failures, more="orchard report RUN"),
            *_labelled("left out", self.problems, more="orchard tasks list"),
            f"next       orchard report {self.run}",
        ]
        if self.finished:
            failed = " --failed" if self.scored < self.finished or (self.mean_score or 0) < 1 else ""
            lines.append(f"           orchard show {self.run}{failed}")
        return lines

    def _retried(self) -> list[str]:
        if not self.rollout_retries and not self.call_retries:
            return []
        return [f"retries    {self.rollout_retries} of whole rollouts, {self.call_retries} of model calls"]


def _failures(run: Run, entries: list[Finished]) -> tuple[str, ...]:
    """One rollout of each class is read, so that a long run costs no more than a short one."""
    numbers = Counter(entry.error for entry in entries if entry.error)
    first = {entry.error: entry for entry in reversed(entries)}
    said: list[str] = []
    for kind, number in numbers.most_common():
        error = run.load(first[kind]).error if len(said) < SHOWN else None
        said.append(
            f"{kind} {number}" + (f": {clean_line(error.message.replace(_HINT, '; '), 400)}" if error else "")
        )
    return tuple(said)


def _labelled(label: str, problems: tuple[str, ...], *, more: str) -> list[str]:
    """The first few, the label before the first."""
    lines = list(problems[:SHOWN])
    if len(problems) > SHOWN:
        lines.append(f"and {len(problems) - SHOWN} more: {more}")
    return [f"{'' if number else label:10} {line}" for number, line in enumerate(lines)]
