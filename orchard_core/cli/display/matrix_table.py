"""The rows of a matrix, fitted to a width; used live and at the end."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from orchard_core.cli.display.matrix_progress import CellProgress
from orchard_core.cli.display.words import money
from orchard_core.evals.clean import clean_line

_NUMBERS = (("DONE", 9), ("PASS", 6), ("COST", 9), ("ERR", 4))
_NAMES = ("HARNESS", "MODEL", "TASK SET")
_GAP = 2
_NARROWEST = 6


def names_of(cell: CellProgress) -> tuple[str, str, str]:
    """Harness, model and task set, harmless on a terminal."""
    key = cell.key
    return clean_line(key.harness), clean_line(key.model), clean_line(key.taskset)


def rows_table(
    cells: Sequence[CellProgress], *, all_cells: Sequence[CellProgress], console: Console
) -> Table:
    """One row a cell. A name that is the same in `all_cells` is left out: the title has it."""
    columns = varying(all_cells)
    widths = _widths([[names_of(cell)[column] for cell in all_cells] for column in columns], console.width)
    grid = Table.grid(padding=(0, _GAP, 0, 0))
    for width in widths:
        grid.add_column(width=width, no_wrap=True, overflow="ellipsis")
    for _, width in _NUMBERS:
        grid.add_column(width=width, no_wrap=True, justify="right", overflow="ellipsis")
    heads = [_NAMES[column] for column in columns] + [name for name, _ in _NUMBERS]
    grid.add_row(*(Text(head, style="bold dim") for head in heads))
    for cell in cells:
        own = names_of(cell)
        names = [Text(_middle_cut(own[column], width)) for column, width in zip(columns, widths, strict=True)]
        grid.add_row(*names, *(_refused() if cell.refused else _numbers(cell)))
    return grid


def varying(cells: Sequence[CellProgress]) -> list[int]:
    """Which of harness, model and task set tell the cells apart; the harness when nothing does."""
    found = [column for column in range(3) if len({names_of(cell)[column] for cell in cells}) > 1]
    return found or [0]


def _widths(columns: list[list[str]], width: int) -> list[int]:
    """What the names need, the widest cut until all columns fit."""
    room = width - 1 - sum(number + _GAP for _, number in _NUMBERS) - _GAP * len(columns)
    widths = [max(_NARROWEST, *(len(text) for text in column), 8) for column in columns]
    while sum(widths) > room and max(widths) > _NARROWEST:
        widths[widths.index(max(widths))] -= 1
    return widths


def _middle_cut(text: str, width: int) -> str:
    """The end of a name such as `openai:ORG/MODEL-30B` tells as much as its beginning."""
    if len(text) <= width:
        return text
    tail = (width - 1) * 2 // 3
    return f"{text[: width - 1 - tail]}…{text[-tail:]}"


def _refused() -> tuple[Text, ...]:
    return (Text("refused", style="yellow"), *(Text("") for _ in _NUMBERS[1:]))


def _numbers(cell: CellProgress) -> tuple[Text, ...]:
    rate = cell.rate
    done = f"{len(cell.scores)}/{cell.planned}"
    cost = money(cell.cost_usd, partial=cell.unpriced)
    return (
        Text(done, style="" if len(cell.scores) < cell.planned else "green"),
        Text("-" if rate is None else f"{rate:.1%}" if rate < 1 else "100%", style="bold"),
        Text("unknown" if cost == "cost unknown" else cost),
        Text(str(cell.errors or ""), style="red"),
    )
