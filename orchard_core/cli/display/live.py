"""The live screen: title, bar, figures, and the rollouts that run longest."""

from __future__ import annotations

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from orchard_core.cli.display.progress import Progress, Running
from orchard_core.cli.display.words import clock, figures, outcomes
from orchard_core.evals.clean import clean_line

_OTHER_LINES = 7
"""Lines of the screen that are not rollouts."""
_MOST_ROWS = 12


class LiveView:
    """Redraws on stderr, so that stdout stays free for what the command prints."""

    every_s = 0.2

    def __init__(self, title: str, console: Console | None = None) -> None:
        self._title = clean_line(title)
        self._console = console or Console(stderr=True, markup=False, emoji=False, highlight=False)
        self._live = Live(console=self._console, auto_refresh=False)

    def show(self, progress: Progress, now: float) -> None:
        """Redraw."""
        if not self._live.is_started:
            self._live.start()
        self._live.update(screen(self._title, progress, now, self._console), refresh=True)

    def close(self, progress: Progress, now: float) -> None:
        """Leave the last state on the screen."""
        if progress.started_at is not None:
            self.show(progress, now)
        self._live.stop()


def screen(title: str, progress: Progress, now: float, console: Console) -> Group:
    """What one look shows."""
    if progress.started_at is None:
        return Group(_line(title, "bold", console), _line("starting ...", "dim", console))
    lines: list[RenderableType] = [_line(title, "bold", console), _bar(progress, now, console)]
    lines += _wrapped(figures(progress, now), console)
    if progress.outcomes:
        lines.append(_line(outcomes(progress), "dim", console))
    rows = _rows(progress, console.height)
    return Group(*lines, _running(rows, now, console)) if rows else Group(*lines)


def _line(text: str, style: str, console: Console) -> Text:
    return Text(clean_line(text, console.width), style=style, no_wrap=True, overflow="ellipsis")


def _bar(progress: Progress, now: float, console: Console) -> Table:
    share = progress.finished / progress.planned if progress.planned else 0.0
    state = "stopped" if progress.cancelled else "ended" if progress.ended else ""
    right = f" {share:4.0%}  {clock(progress.elapsed_s(now))}  {state or 'ETA ' + clock(progress.eta_s(now))}"
    grid = Table.grid(padding=0)
    grid.add_column(width=max(5, console.width - len(right) - 1))
    grid.add_column(no_wrap=True)
    grid.add_row(ProgressBar(total=max(progress.planned, 1), completed=progress.finished), right)
    return grid


def _wrapped(parts: list[str], console: Console) -> list[Text]:
    """The figures on as few lines as the width allows, never cut inside one."""
    lines: list[str] = []
    for part in parts:
        if lines and len(lines[-1]) + 3 + len(part) <= console.width - 1:
            lines[-1] += f"   {part}"
        else:
            lines.append(part)
    return [_line_kept(line) for line in lines]


def _line_kept(line: str) -> Text:
    return Text(line, no_wrap=True, overflow="ellipsis")


def _rows(progress: Progress, height: int) -> list[Running]:
    """Those that run longest, as many as the screen holds."""
    room = max(0, min(_MOST_ROWS, height - _OTHER_LINES))
    return list(progress.running.values())[:room]


def _running(rows: list[Running], now: float, console: Console) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    task_width = max(8, min(48, console.width - 34))
    for width in (task_width, 8, 9, 8):
        grid.add_column(no_wrap=True, width=width, overflow="ellipsis")
    for row in rows:
        grid.add_row(
            Text(f"  {clean_line(row.task, task_width - 6)} #{row.attempt}"),
            Text(row.phase.value if row.phase else "", style="cyan"),
            Text(f"{row.calls} calls" if row.calls else ""),
            Text(clock(now - row.started_at), style="dim"),
        )
    return grid
