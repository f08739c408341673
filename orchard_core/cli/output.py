"""Tables and JSON for commands: fitted to a terminal, whole plain lines anywhere else.

Rich draws the live screen; tables do without it, because importing it costs a third of `orchard plugins`.
"""

from __future__ import annotations

import os
import re
import sys
import unicodedata
from collections.abc import Sequence
from itertools import zip_longest
from shutil import get_terminal_size
from textwrap import TextWrapper
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from pydantic import JsonValue

_GAP = 2
_NARROWEST = 8
_LONG = 12
"""A word of more cells may be broken anywhere; any may be after a `/`, as in a path or `10/20/30`."""
_AFTER_SLASH = re.compile(r"(?<=/)(?=.)")


def out(text: str = "", **style: bool | str) -> None:
    """A line on stdout; styled only on a terminal."""
    typer.echo(_styled(text, sys.stdout.isatty(), style))


def err(text: str, **style: bool | str) -> None:
    """A line on stderr; styled only on a terminal."""
    typer.echo(_styled(text, sys.stderr.isatty(), style), err=True)


def _styled(text: str, terminal: bool, style: dict[str, bool | str]) -> str:
    if not style or not terminal or "NO_COLOR" in os.environ:
        return text
    return typer.style(text, **style)  # type: ignore[arg-type] # its keywords are colours and flags


def print_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table without borders on stdout: easy on narrow terminals and on `grep`."""
    width = get_terminal_size().columns if sys.stdout.isatty() else None
    for number, line in enumerate(table(head, rows, width=width)):
        out(line, **({"bold": True} if number == 0 else {}))


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, width: int | None) -> list[str]:
    """The table's lines, at most `width` columns wide; None: as wide as it is.

    Where not even the words fit beside each other, each row stands below the one before, a line a column.
    """
    columns = list(zip(head, *rows, strict=True))
    widths = [max(map(cells, column)) for column in columns]
    if width is not None:
        words = [
            max(map(cells, _AFTER_SLASH.sub(" ", " ".join(column)).split()), default=0) for column in columns
        ]
        _shrink(widths, words, width - 1)
        if not _shrink(widths, [min(word, _LONG) for word in words], width - 1):
            return _stacked(head, rows, width - 1)
    return [line for row in (head, *rows) for line in _row(row, widths)]


def _shrink(widths: list[int], floors: Sequence[int], room: int) -> bool:
    """Take from the widest column until all fit; false: none can give more without going below its floor."""
    while sum(widths) + _GAP * (len(widths) - 1) > room:
        able = [number for number, width in enumerate(widths) if width > max(floors[number], _NARROWEST)]
        if not able:
            return False
        widths[max(able, key=widths.__getitem__)] -= 1
    return True


def _stacked(head: Sequence[str], rows: Sequence[Sequence[str]], room: int) -> list[str]:
    names = max(map(cells, head))
    widths = (names, max(_NARROWEST, room - names - _GAP))
    blocks = [[line for pair in zip(head, row, strict=True) for line in _row(pair, widths)] for row in rows]
    return [line for number, block in enumerate(blocks) for line in ([""] if number else []) + block]


def _row(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    folded = [_fold(text, width) for text, width in zip(row, widths, strict=True)]
    lines = []
    for parts in zip_longest(*folded, fillvalue=""):
        padded = [part + " " * (width - cells(part)) for part, width in zip(parts, widths, strict=True)]
        lines.append((" " * _GAP).join(padded).rstrip())
    return lines


def _fold(text: str, width: int) -> list[str]:
    if cells(text) <= width:
        return [text]
    narrow = width if cells(text) == len(text) else max(1, width // 2)
    return _Wrapper(narrow, break_on_hyphens=False).wrap(text) or [""]


class _Wrapper(TextWrapper):
    def _split(self, text: str) -> list[str]:
        return [part for word in super()._split(text) for part in _AFTER_SLASH.split(word)]


def cells(text: str) -> int:
    """Columns a text takes on a terminal."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
        for char in text
    )


def print_json(value: JsonValue) -> None:
    """One JSON document on stdout; ASCII only, so that no lone surrogate can break the pipe."""
    import json

    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=True) + "\n")
