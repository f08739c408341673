"""A matrix for people, as Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from orchard_core.evals.figures import p_value
from orchard_core.evals.markdown_words import both, dollars, escape, estimate, number, table
from orchard_core.evals.matrix_report import Cell, CellKey, MatrixReport, PairedDifference
from orchard_core.evals.paired import MeanDifference

_TASKS_SHOWN = 200
_PAIRS_SHOWN = 100


def matrix_markdown(report: MatrixReport) -> str:
    """One document: rates, several attempts, differences, outcomes, spending, transfer, tasks, methods."""
    parts = [
        f"# Matrix {escape(report.root)}\n",
        _rates(report),
        _several(report.cells),
        _differences(report),
        _outcomes(report.cells),
        _spending(report.cells),
        _transfer(report),
        _tasks(report.cells),
        _refused(report),
        _methods(report),
    ]
    return "\n".join(part for part in parts if part)


def _rates(report: MatrixReport) -> str:
    rows = [
        [
            *_names(cell.key),
            f"{cell.report.total.finished}/{cell.report.total.planned}",
            estimate(cell.report.total.pass_at_1.planned),
            estimate(cell.report.total.pass_at_1.valid),
        ]
        for cell in report.cells
    ]
    head = ["harness", "model", "task set", "finished", "pass@1 planned", "pass@1 valid"]
    return _section("pass@1", table(head, rows, numbers=3))


def _several(cells: Sequence[Cell]) -> str:
    rows = [
        [*_names(cell.key), str(at.k), *both(at.rate), *both(hat.rate)]
        for cell in cells
        for at, hat in zip(cell.report.total.pass_at, cell.report.total.pass_hat, strict=True)
    ]
    rates = ["pass@k planned", "pass@k valid", "pass^k planned", "pass^k valid"]
    head = ["harness", "model", "task set", "k", *rates]
    return _section("Several attempts", table(head, rows, numbers=5)) if rows else ""


def _differences(report: MatrixReport) -> str:
    if not report.differences:
        return ""
    ranked = sorted(report.differences, key=lambda item: 2.0 if item.p_adjusted is None else item.p_adjusted)
    rows = [_difference(item) for item in ranked[:_PAIRS_SHOWN]]
    head = ["A", "B", "task set", "tasks", "B less A", "p", "p corrected"]
    lines = table(head, rows, numbers=4)
    if len(ranked) > _PAIRS_SHOWN:
        lines += ["", f"and {len(ranked) - _PAIRS_SHOWN} more, none with a smaller p."]
    return _section("Differences", lines)


def _difference(item: PairedDifference) -> list[str]:
    names = [" · ".join(escape(part) for part in (key.harness, key.model)) for key in (item.left, item.right)]
    return [
        *names,
        escape(item.left.taskset),
        str(item.tasks),
        _points(item.difference),
        _p(item.p_value),
        _p(item.p_adjusted),
    ]


def _outcomes(cells: Sequence[Cell]) -> str:
    found = [Counter({item.attribution: 0 for item in cell.report.outcomes}) for cell in cells]
    for counts, cell in zip(found, cells, strict=True):
        for item in cell.report.outcomes:
            counts[item.attribution] += item.count
    doers = sorted({doer for counts in found for doer in counts})
    rows = [
        [*_names(cell.key), *(str(counts[doer]) for doer in doers), str(cell.report.missing)]
        for cell, counts in zip(cells, found, strict=True)
    ]
    head = ["harness", "model", "task set", *(doer.value for doer in doers), "not finished"]
    return _section("Whose doing the outcomes are", table(head, rows, numbers=len(doers) + 1))


def _spending(cells: Sequence[Cell]) -> str:
    rows = []
    for cell in cells:
        spending = cell.report.total.spending
        spent = spending.spent
        rows.append(
            [
                *_names(cell.key),
                number(spending.turns_mean, ".1f"),
                f"{spent.calls:,}",
                f"{spent.usage.total:,}",
                dollars(spent.cost_usd),
                number(spending.wall_clock_mean_s, ".1f"),
                f"{spending.wall_clock_s:,.1f}",
            ]
        )
    head = ["harness", "model", "task set", "turns", "calls", "tokens", "cost", "s a rollout", "s in all"]
    return _section("Spent", table(head, rows, numbers=6))


def _transfer(report: MatrixReport) -> str:
    if not report.transfer:
        return ""
    evaluated = list(dict.fromkeys(item.eval_harness for item in report.transfer))
    trained = list(dict.fromkeys(item.train_harness for item in report.transfer))
    rates = {(item.train_harness, item.eval_harness): item.pass_at_1.planned for item in report.transfer}
    rows = [[escape(row), *(estimate(rates.get((row, column))) for column in evaluated)] for row in trained]
    head = ["trained under, evaluated under", *map(escape, evaluated)]
    lines = table(head, rows, numbers=len(evaluated))
    return _section("Transfer: pass@1 of planned, by training and evaluating harness", lines)


def _tasks(cells: Sequence[Cell]) -> str:
    parts: list[str] = []
    for taskset in dict.fromkeys(cell.key.taskset for cell in cells):
        same = [cell for cell in cells if cell.key.taskset == taskset]
        passed = [{line.task: f"{line.passed}/{line.planned}" for line in cell.tasks} for cell in same]
        tasks = list(dict.fromkeys(line.task for cell in same for line in cell.tasks))
        rows = [[escape(task), *(own.get(task, "-") for own in passed)] for task in tasks[:_TASKS_SHOWN]]
        head = ["task", *(f"{escape(cell.key.harness)} · {escape(cell.key.model)}" for cell in same)]
        lines = table(head, rows, numbers=len(same))
        if len(tasks) > _TASKS_SHOWN:
            lines += ["", f"and {len(tasks) - _TASKS_SHOWN} more tasks."]
        parts.append(_section(f"Tasks of {escape(taskset)}: passed of planned", lines))
    return "\n".join(parts)


def _refused(report: MatrixReport) -> str:
    lines = [
        f"- {' · '.join(_names(item.key))}: {escape(item.reason) or 'not started yet'}"
        for item in report.refused
    ]
    return _section("Cells that were not run", lines) if lines else ""


def _methods(report: MatrixReport) -> str:
    counted = (
        f"An attempt has passed with a score of at least {report.threshold:g}. Planned: over every planned "
        "attempt, and what failed or is missing has not passed. Valid: without what was not the doing of the "
        "agent. A dash: not defined with so few attempts or tasks."
    )
    lines = [counted, "", f"Rates: {report.method}."]
    if report.differences:
        lines += ["", f"Differences, over everything planned: {report.paired_method}."]
    return _section("Methods", lines)


def _names(key: CellKey) -> list[str]:
    return [escape(key.harness), escape(key.model), escape(key.taskset)]


def _section(title: str, lines: Iterable[str]) -> str:
    return "\n".join([f"## {title}", "", *lines, ""])


def _points(found: MeanDifference | None) -> str:
    if found is None:
        return "-"
    text = f"{100 * found.value:+.1f}"
    if found.low is None or found.high is None:
        return text
    return f"{text} [{100 * found.low:+.1f}, {100 * found.high:+.1f}]"


def _p(value: float | None) -> str:
    return "-" if value is None else p_value(value)
