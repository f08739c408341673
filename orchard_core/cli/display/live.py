"""The live screen: title, bar, figures, and the rollouts that run longest."""

from __future__ import annotations

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from orchard_core.cli.display.progress import Progress, Running
from orchard_core.cli.display.screen import LiveView, bar, line
from orchard_core.cli.display.words import clock, figures, outcomes
from orchard_core.evals.clean import clean_line

_OTHER_LINES = 7
"""Lines of the screen that are not rollouts."""
_MOST_ROWS = 12


def live_view(title: str, console: Console | None = None) -> LiveView[Progress]:
    """The live view of a run."""
    return LiveView(title, screen, console)


def screen(title: str, progress: Progress, now: float, console: Console) -> Group:
    """What one look shows."""
    if progress.started_at is None:
        return Group(line(title, "bold", console), line("starting ...", "dim", console))
    state = "stopped" if progress.cancelled else "ended" if progress.ended else ""
    lines: list[RenderableType] = [line(title, "bold", console), bar(progress, now, console, state=state)]
    lines += _wrapped(figures(progress, now), console)
    if progress.outcomes:
        lines.append(line(outcomes(progress), "dim", console))
    rows = _rows(progress, console.height)
    return Group(*lines, _running(rows, now, console)) if rows else Group(*lines)


def _wrapped(parts: list[str], console: Console) -> list[Text]:
    """The figures on as few lines as the width allows, never cut inside one."""
    lines: list[str] = []
    for part in parts:
        if lines and len(lines[-1]) + 3 + len(part) <= console.width - 1:
            lines[-1] += f"   {part}"
        else:
            lines.append(part)
    return [Text(text, no_wrap=True, overflow="ellipsis") for text in lines]


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
