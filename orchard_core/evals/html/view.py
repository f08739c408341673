"""The report's cells, tasks and rollouts as the templates show them."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup, escape

from orchard_core.evals.clean import clean
from orchard_core.evals.html import words
from orchard_core.evals.html.verdict import Verdict, judge
from orchard_core.evals.matrix_report import Cell, MatrixReport, RolloutLine, TaskLine

TIMES = "\N{MULTIPLICATION SIGN}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutView:
    """One attempt."""

    anchor: str
    """Id of its row, made of numbers alone: names of a run are never part of it."""
    task: str
    """The task's id."""
    line: RolloutLine
    """The figures."""
    verdict: Verdict
    """Passed, or whose doing."""
    command: Markup | None
    """What shows it in a terminal; None when its id or path could not be typed safely."""
    page: str
    """Address of its own page; empty: none was written."""

    @property
    def ending(self) -> str:
        """How it ended, by whose doing, and through which error."""
        if self.line.outcome is None:
            return "not finished"
        parts = [self.line.outcome.value]
        if self.verdict is not Verdict.PASSED and self.line.attribution is not None:
            parts.append(self.line.attribution.value)
        return ", ".join([*parts, self.line.error] if self.line.error else parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class CellView:
    """One cell."""

    number: int
    """Its place, from 1: what names it in charts."""
    cell: Cell
    """The figures."""
    rollouts: tuple[RolloutView, ...]
    """By task and attempt."""
    verdicts: Mapping[Verdict, int]
    """How many of each."""

    @property
    def name(self) -> str:
        """Harness and model."""
        return f"{self.cell.key.harness} {TIMES} {self.cell.key.model}"

    @property
    def anchor(self) -> str:
        """Id of its list of rollouts."""
        return f"cell-{self.number}"

    @property
    def tokens_each(self) -> float | None:
        """Tokens of a finished rollout, on average."""
        total = self.cell.report.total
        return total.spending.usage.total / total.finished if total.finished else None

    @property
    def cost_each(self) -> float | None:
        """US dollars of a finished rollout, on average; None: unknown."""
        total = self.cell.report.total
        known = total.finished and total.spending.cost_usd is not None
        return (total.spending.cost_usd or 0.0) / total.finished if known else None


def cell_views(report: MatrixReport, pages: Mapping[str, str]) -> tuple[CellView, ...]:
    """Every cell; `pages` gives the addresses of rollouts' own pages by anchor."""
    return tuple(_cell(number, cell, report, pages) for number, cell in enumerate(report.cells, start=1))


def anchors(number: int, cell: Cell) -> Iterator[tuple[str, TaskLine, RolloutLine]]:
    """Each rollout of a cell with the id of its row."""
    place = 0
    for task in cell.tasks:
        for line in task.rollouts:
            place += 1
            yield f"r{number}-{place}", task, line


def _cell(number: int, cell: Cell, report: MatrixReport, pages: Mapping[str, str]) -> CellView:
    where = str(Path(report.root) / cell.run)
    rollouts = tuple(
        RolloutView(
            anchor=anchor,
            task=task.task,
            line=line,
            verdict=judge(line, report.threshold),
            command=None if line.outcome is None else show_command(where, line.id),
            page=pages.get(anchor, ""),
        )
        for anchor, task, line in anchors(number, cell)
    )
    counted = Counter(rollout.verdict for rollout in rollouts)
    return CellView(number=number, cell=cell, rollouts=rollouts, verdicts=counted)


def show_command(run: str, rollout: str) -> Markup | None:
    """`orchard show RUN ROLLOUT`, quoted for a shell; None when it holds what nobody can type or see."""
    command = shlex.join(["orchard", "show", run, rollout])
    exact = clean(command) == command and "\n" not in command and len(command) <= 500
    return escape(command) if exact and not rollout.startswith("-") else None


def sentence(report: MatrixReport) -> str:
    """What is compared: `3 harnesses with oracle on workbench:20`."""
    keys = [cell.key for cell in report.cells] + [cell.key for cell in report.refused]
    harness = _one_or_many([key.harness for key in keys], "harness", "harnesses")
    model = _one_or_many([key.model for key in keys], "model")
    taskset = _one_or_many([key.taskset for key in keys], "task set")
    return f"{harness} {TIMES} {model} on {taskset}"


def _one_or_many(names: list[str], one: str, many: str = "") -> str:
    different = set(names)
    return different.pop() if len(different) == 1 else words.plural(len(different), one, many)
