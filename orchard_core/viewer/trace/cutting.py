"""Long texts without their middle, and a page's room."""

from __future__ import annotations

import json

from orchard_core.viewer.image import is_data_url, peek
from orchard_core.viewer.pieces import Piece
from orchard_core.viewer.trace.parts import Said, Shown

HEAD, TAIL = 2_400, 600
"""Characters of a long piece's beginning and end that are shown."""
LINES = 36
"""Lines of the beginning; a quarter as many of the end."""
BRIEF = 240
"""Characters of a piece once the page's room is used up."""
ROOM = 320_000
"""Characters of a page."""
MESSAGES = 200
"""Messages before or after one answer that are shown."""
_PARSED = 200_000
_ARGUMENTS = 24


def _until_line(text: str, most: int) -> str:
    """Its first lines, with the last one's end."""
    at = -1
    for _ in range(most):
        at = text.find("\n", at + 1)
        if at < 0:
            return text
    return text[:at]


def _last_lines(text: str, most: int) -> str:
    at = len(text.rstrip("\n"))
    for _ in range(most):
        at = text.rfind("\n", 0, at)
        if at < 0:
            return text
    return text[at + 1 :] if most else ""


def left_out(count: int) -> Said:
    """In place of messages that a page has no room for."""
    return Said(role="…", pieces=(), note=f"{count:,} further messages; see the raw record")


class Room:
    """How much a page may still show."""

    def __init__(self, size: int = ROOM, *, head: int = HEAD, tail: int = TAIL, lines: int = LINES) -> None:
        self._left = size
        self._head, self._tail, self._lines = head, tail, lines

    def show(self, piece: Piece, ref: str) -> Shown:
        """As much of a piece as there is room for."""
        if piece.kind == "image":
            return self._picture(piece, ref)
        head, tail = self._cut(piece.text)
        arguments = self._arguments(piece) if piece.kind == "call" else ()
        return Shown(
            kind=piece.kind,
            head=head,
            tail=tail,
            size=len(piece.text),
            ref=ref,
            name=piece.name[:200],
            call_id=piece.call_id[:200],
            failed=piece.failed,
            arguments=arguments,
        )

    def _cut(self, text: str) -> tuple[str, str]:
        most, tail = (self._head, self._tail) if self._left > 0 else (BRIEF, 0)
        end_lines = self._lines // 4 if tail else 0
        short = len(text) <= most + tail + tail // 2
        if short and text.count("\n") <= self._lines + 2 * end_lines:
            head, end = text, ""
        else:
            head = _until_line(text[:most], self._lines)
            end = _last_lines(text[max(len(head), len(text) - tail) :], end_lines)
        self._left -= len(head) + len(end)
        return head, end

    def _arguments(self, piece: Piece) -> tuple[tuple[str, str], ...]:
        if len(piece.text) > _PARSED:
            return ()
        try:
            value = json.loads(piece.text)
        except (ValueError, RecursionError):
            return ()
        if not isinstance(value, dict) or len(value) > _ARGUMENTS:
            return ()
        return tuple((str(name)[:100], self._value(item)) for name, item in value.items())

    def _value(self, item: object) -> str:
        text = item if isinstance(item, str) else json.dumps(item, ensure_ascii=False, indent=1)
        head, end = self._cut(text)
        return f"{head}\n[… {len(text) - len(head) - len(end):,} characters …]\n{end}" if end else head

    def _picture(self, piece: Piece, ref: str) -> Shown:
        if not is_data_url(piece.text):
            return Shown(kind="image", head=f"picture at {piece.text[:300]}, which is not fetched", ref=ref)
        found = peek(piece.text)
        if isinstance(found, str):
            return Shown(kind="image", head=f"picture: {found}", size=len(piece.text), ref=ref)
        words = f"{found.media_type}, {found.width:,} by {found.height:,}"
        return Shown(kind="image", head=words, ref=ref, width=found.width, height=found.height)
