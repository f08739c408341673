"""The first thing to read: what was compared, and what came out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orchard_core.evals.html import words
from orchard_core.evals.html.verdict import Verdict
from orchard_core.evals.html.view import CellView
from orchard_core.evals.matrix_report import MatrixReport
from orchard_core.evals.significant import SIGNIFICANT, is_significant


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """One figure."""

    label: str
    """What it is."""
    figure: str
    """The figure."""
    notes: tuple[str, ...]
    """What belongs beside it, a line each."""


def headline(report: MatrixReport, cells: Sequence[CellView]) -> tuple[Tile, ...]:
    """Pass rate, attempts, blame, cost; differences where there are cells to compare."""
    tiles = [_best(cells), _attempts(cells), _blame(cells), _cost(cells)]
    if report.differences:
        tiles.insert(1, _differences(report))
    return tuple(tiles)


def _best(cells: Sequence[CellView]) -> Tile:
    rated = [(view.cell.report.total.pass_at_1.planned, view) for view in cells]
    known = [(rate, view) for rate, view in rated if rate is not None]
    if not known:
        return Tile(label="pass@1", figure=words.NONE, notes=("no attempt is planned",))
    top = max(rate.value for rate, _ in known)
    best = [(rate, view) for rate, view in known if rate.value == top]
    rate, view = best[0]
    valid = view.cell.report.total.pass_at_1.valid
    bounds = words.interval(rate)
    if len(cells) == 1:
        notes = (
            f"interval {bounds}" if bounds else "one task: no interval",
            f"{words.rate(valid)} of what is valid",
        )
        return Tile(label="pass@1", figure=words.percent(top), notes=notes)
    others = f"and {words.plural(len(best) - 1, 'other cell')}" if len(best) > 1 else ""
    notes = (f"cell {view.number}: {view.name}", others or bounds)
    return Tile(label="Best pass@1", figure=words.percent(top), notes=notes)


def _differences(report: MatrixReport) -> Tile:
    held = sum(map(is_significant, report.differences))
    note = f"of {words.plural(len(report.differences), 'pair')} differ at p < {SIGNIFICANT:g}, corrected"
    return Tile(label="Differences that hold", figure=str(held), notes=(note,))


def _attempts(cells: Sequence[CellView]) -> Tile:
    totals = [view.cell.report.total for view in cells]
    planned, finished = sum(row.planned for row in totals), sum(row.finished for row in totals)
    valid, passed = sum(row.valid for row in totals), sum(row.passed for row in totals)
    rest = f", {planned - finished:,} not finished" if planned > finished else ""
    return Tile(
        label="Passed",
        figure=f"{passed:,} of {planned:,}",
        notes=(f"{finished:,} finished{rest}", f"{valid:,} valid: scored, or ended by the agent's own doing"),
    )


def _blame(cells: Sequence[CellView]) -> Tile:
    others = (Verdict.MODEL, Verdict.HARNESS, Verdict.INFRASTRUCTURE, Verdict.TASK, Verdict.USER)
    counted = {which: sum(view.verdicts.get(which, 0) for view in cells) for which in others}
    listed = ", ".join(f"{which.name.lower()} {number:,}" for which, number in counted.items() if number)
    figure = f"{sum(counted.values()):,}"
    return Tile(label="Not the agent's doing", figure=figure, notes=(listed or "none",))


def _cost(cells: Sequence[CellView]) -> Tile:
    spent = [view.cell.report.total.spending.spent for view in cells]
    known = [item.cost_usd for item in spent if item.cost_usd is not None]
    tokens = f"{words.count(sum(item.usage.total for item in spent))} tokens"
    unknown = len(spent) - len(known)
    if not known:
        return Tile(label="Cost", figure="unknown", notes=(tokens,))
    note = f"without {words.plural(unknown, 'cell')} of unknown cost" if unknown else ""
    return Tile(label="Cost", figure=words.dollars(sum(known)), notes=(tokens, note))
