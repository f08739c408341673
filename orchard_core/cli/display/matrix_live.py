"""The live screen of a matrix: title, bar, figures, a row a cell."""

from __future__ import annotations

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from orchard_core.cli.display.matrix_progress import CellProgress, MatrixProgress
from orchard_core.cli.display.matrix_table import names_of, rows_table, varying
from orchard_core.cli.display.words import clock, money
from orchard_core.evals.clean import clean_line

_OTHER_LINES = 7
"""Lines of the screen that are not cells."""


class LiveMatrix:
    """Redraws on stderr, so that stdout stays free for what the command prints."""

    every_s = 0.2

    def __init__(self, title: str, console: Console | None = None) -> None:
        self._title = clean_line(title)
        self._console = console or Console(stderr=True, markup=False, emoji=False, highlight=False)
        self._live = Live(console=self._console, auto_refresh=False)

    def show(self, progress: MatrixProgress, now: float) -> None:
        """Redraw."""
        if not self._live.is_started:
            self._live.start()
        self._live.update(screen(self._title, progress, now, self._console), refresh=True)

    def close(self, progress: MatrixProgress, now: float) -> None:
        """Leave the last state on the screen."""
        if progress.started_at is not None:
            self.show(progress, now)
        self._live.stop()


def screen(title: str, progress: MatrixProgress, now: float, console: Console) -> Group:
    """What one look shows."""
    lines: list[RenderableType] = [_line(_titled(title, progress), "bold", console)]
    if progress.started_at is None:
        return Group(*lines, _line("starting ...", "dim", console))
    lines += [_bar(progress, now, console), _line(_figures(progress), "", console)]
    cells = list(progress.cells.values())
    shown = _most_interesting(cells, max(1, console.height - _OTHER_LINES))
    lines += [Text(""), rows_table(shown, all_cells=cells, console=console)]
    if len(shown) < len(cells):
        lines.append(_line(f"and {len(cells) - len(shown)} more cells", "dim", console))
    if progress.capped:
        lines.append(_line(f"stopping: {progress.capped}", "yellow", console))
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


def _bar(progress: MatrixProgress, now: float, console: Console) -> Table:
    share = progress.finished / progress.planned if progress.planned else 0.0
    state = "ended" if progress.ended else f"ETA {clock(progress.eta_s(now))}"
    right = f" {share:4.0%}  {clock(progress.elapsed_s(now))}  {state}"
    grid = Table.grid(padding=0)
    grid.add_column(width=max(5, console.width - len(right) - 1))
    grid.add_column(no_wrap=True)
    grid.add_row(ProgressBar(total=max(progress.planned, 1), completed=progress.finished), right)
    return grid


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


def _line(text: str, style: str, console: Console) -> Text:
    return Text(clean_line(text, console.width), style=style, no_wrap=True, overflow="ellipsis")
