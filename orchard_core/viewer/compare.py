"""Two conversations side by side, turn by turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from orchard_core.viewer.trace.cutting import Room
from orchard_core.viewer.trace.parts import Trace, TurnView

HEAD, TAIL, LINES, ROOM = 900, 240, 14, 120_000
"""Characters of a piece's beginning and end, its lines, and characters of each side."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One turn of each."""

    left: TurnView | None
    """None: it has ended."""
    right: TurnView | None
    """None: it has ended."""
    same: bool
    """Both do the same: the same calls with the same arguments, or the same words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two traces beside each other."""

    facts: Sequence[tuple[str, str, str, bool]]
    """Name, left, right, whether they differ."""
    tools: tuple[Sequence[str], Sequence[str], Sequence[str]]
    """Names of the tools that only the left was shown, that both were, that only the right was."""
    pairs: Sequence[Pair]
    """By turn of the main conversation."""


def side_room() -> Room:
    """Room for one of the two."""
    return Room(ROOM, head=HEAD, tail=TAIL, lines=LINES)


def compare(left: Trace, right: Trace) -> Comparison:
    """Both, their main conversations aligned by turn."""
    return Comparison(
        facts=_facts(left, right),
        tools=_tools(left, right),
        pairs=[_pair(one, other) for one, other in zip_longest(_main(left), _main(right))],
    )


def _main(trace: Trace) -> list[TurnView]:
    return [turn for turn in trace.turns if turn.step is not None]


def _pair(left: TurnView | None, right: TurnView | None) -> Pair:
    same = left is not None and right is not None and _said(left) == _said(right)
    return Pair(left=left, right=right, same=same)


def _said(turn: TurnView) -> object:
    pieces = turn.answer.pieces if turn.answer is not None else ()
    calls = [(piece.name, piece.head, piece.tail, piece.size) for piece in pieces if piece.kind == "call"]
    return calls or [(piece.head, piece.tail, piece.size) for piece in pieces if piece.kind == "text"]


def _facts(left: Trace, right: Trace) -> list[tuple[str, str, str, bool]]:
    ours, theirs = (dict([*trace.facts, *trace.provenance]) for trace in (left, right))
    wanted = ("score", "ended", "whose doing", "stopped", "turns", "calls", "tokens", "cost", "time")
    named = [*wanted, "harness", "model", "sampling", "split", "source", "credit"]
    rows = [(name, ours.get(name, ""), theirs.get(name, "")) for name in named]
    return [(name, a, b, a != b) for name, a, b in rows if a or b]


def _tools(left: Trace, right: Trace) -> tuple[list[str], list[str], list[str]]:
    ours, theirs = ({tool.name for tool in trace.tools} for trace in (left, right))
    return sorted(ours - theirs), sorted(ours & theirs), sorted(theirs - ours)
