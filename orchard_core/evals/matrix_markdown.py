"""A matrix as Markdown: one line a cell, then the differences that hold, then the transfer table."""

from __future__ import annotations

from collections.abc import Sequence

from orchard_core.evals.attempts import Rate
from orchard_core.evals.markdown import dollars, escape, estimate, line, number, to_markdown
from orchard_core.evals.matrix_report import Cell, CellKey, MatrixReport, PairedDifference
from orchard_core.evals.significant import SIGNIFICANT, is_significant


def matrix_markdown(report: MatrixReport) -> str:
    """The whole document; of a single cell its run's own report, which says more."""
    if len(report.cells) == 1 and not report.refused:
        return to_markdown([report.cells[0].report])
    parts = [
        f"# {len(report.cells)} cells",
        "",
        f"An attempt has passed with a score of at least {report.threshold:g}. {report.method}.",
        "",
        *_cells(report),
        *_differences(report),
        *_transfer(report),
    ]
    return "\n".join(parts) + "\n"


def _cells(report: MatrixReport) -> list[str]:
    head = ["harness", "model", "tasks of", "pass@1 planned", "pass@1 valid", "passed", "valid"]
    head += ["mean score", "turns", "tokens", "cost", "s"]
    lines = [line(head), line([*["---"] * 3, *["---:"] * 9])]
    lines += [line(_cell(cell)) for cell in report.cells]
    lines += [line([*_key(item.key), _reason(item.reason), *["-"] * 8]) for item in report.refused]
    return [*lines, ""]


def _cell(cell: Cell) -> list[str]:
    row = cell.report.total
    return [
        *_key(cell.key),
        *_both(row.pass_at_1),
        f"{row.passed}/{row.planned}",
        str(row.valid),
        number(row.mean_score, ".3f"),
        number(row.spending.turns_mean, ".1f"),
        f"{row.spending.usage.total:,}",
        dollars(row.spending.cost_usd),
        number(row.spending.wall_clock_mean_s, ".1f"),
    ]


def _key(key: CellKey) -> list[str]:
    return [escape(key.harness), escape(key.model), escape(key.taskset)]


def _reason(reason: str) -> str:
    return f"refused: {escape(reason)}" if reason else "not started"


def _differences(report: MatrixReport) -> list[str]:
    if not report.differences:
        return []
    held = list(filter(is_significant, report.differences))
    told = f"{len(held)} of {len(report.differences)} pairs differ at p < {SIGNIFICANT:g} after correction."
    lines = ["## Paired differences", "", told, ""]
    if held:
        lines += [line(["first", "second", "tasks", "difference", "p", "p corrected"])]
        lines += [line(["---", "---", *["---:"] * 4]), *(line(_difference(item)) for item in held), ""]
    return [*lines, f"{report.paired_method}.", ""]


def _difference(item: PairedDifference) -> list[str]:
    found = "-" if item.difference is None else f"{item.difference.value * 100:+.1f} points"
    values = [number(item.p_value, ".4f"), number(item.p_adjusted, ".4f")]
    return [escape(item.left.text), escape(item.right.text), str(item.tasks), found, *values]


def _transfer(report: MatrixReport) -> list[str]:
    if not report.transfer:
        return []
    lines = [line(["trained under", "evaluated under", "pass@1 planned", "pass@1 valid"])]
    lines += [line(["---", "---", "---:", "---:"])]
    for item in report.transfer:
        names: Sequence[str] = (escape(item.train_harness), escape(item.eval_harness))
        lines.append(line([*names, *_both(item.pass_at_1)]))
    return ["## Transfer", "", *lines, ""]


def _both(rate: Rate) -> list[str]:
    return [estimate(rate.planned), estimate(rate.valid)]
