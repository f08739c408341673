"""The live screen of a matrix: title, bar, figures, a row a cell."""

from __future__ import annotations

from rich.console import Console, Group, RenderableType
from rich.text import Text

from orchard_core.cli.display.matrix_progress import CellProgress, MatrixProgress
from orchard_core.cli.display.matrix_table import names_of, rows_table, varying
from orchard_core.cli.display.screen import LiveView, bar, line
from orchard_core.cli.display.words import money

_OTHER_LINES = 7
"""Lines of the screen that are not cells."""


def live_matrix(title: str, console: Console | None = None) -> LiveView[MatrixProgress]:
    """The live view of a matrix."""
    return LiveView(title, screen, console)


def screen(title: str, progress: MatrixProgress, now: float, console: Console) -> Group:
    """What one look shows."""
    lines: list[RenderableType] = [line(_titled(title, progress), "bold", console)]
    if progress.started_at is None:
        return Group(*lines, line("starting ...", "dim", console))
    lines += [
        bar(progress, now, console, state="ended" if progress.ended else ""),
        line(_figures(progress), "", console),
    ]
    cells = list(progress.cells.values())
    shown = _most_interesting(cells, max(1, console.height - _OTHER_LINES))
    lines += [Text(""), rows_table(shown, all_cells=cells, console=console)]
    if len(shown) < len(cells):
        lines.append(line(f"and {len(cells) - len(shown)} more cells", "dim", console))
    if progress.capped:
        lines.append(line(f"stopping: {progress.capped}", "yellow", console))
    return Group(*lines)


def _titled(title: str, progress: MatrixProgress) -> str:
    """The names that all cells share stand here instead of in every row."""
    cells = list(progress.cells.values())
    if not cells:
        return title
    same = [name for column, name in enumerate(names_of(cells[0])) if column not in varying(cells)]
    return " · ".join((title, *same))


def _most_interesting(cells: list[CellProgress], room: int) -> list[CellProgress]:
    """All in their order when there is room; else those that are being run first."""
    if len(cells) <= room:
        return cells
    chosen = sorted(range(len(cells)), key=lambda n: (not cells[n].run.running, n))[:room]
    return [cells[n] for n in sorted(chosen)]


def _figures(progress: MatrixProgress) -> str:
    cells = progress.cells.values()
    refused = sum(bool(cell.refused) for cell in cells)
    parts = [
        f"{len(cells) - refused} cells" + (f", {refused} refused" if refused else ""),
        f"running {progress.running}",
        f"done {progress.finished}/{progress.planned}",
        money(progress.cost_usd, partial=progress.unpriced),
    ]
    return " · ".join(parts)
