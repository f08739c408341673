"""The words of each turn, for an index."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from orchard_core.types.dataset import DatasetRow
from orchard_core.types.rollout import Rollout
from orchard_core.viewer.pieces import Piece, pieces, pieces_of
from orchard_core.viewer.trace.layout import layout
from orchard_core.viewer.trace.row import messages_of, role_of

LONGEST = 200_000
"""Characters of one piece that can be found."""


def rollout_texts(rollout: Rollout) -> Iterator[tuple[int, str]]:
    """Number and words of each turn: what was new in its request, its answer, and what came back."""
    messages = rollout.trajectory.messages
    for place in layout(rollout.trajectory):
        names = [*place.before, *([place.call.response] if place.call.response else []), *place.after]
        found = [_words(pieces(messages[name].raw)) for name in names if name in messages]
        yield place.call.index, "\n".join(found)


def row_texts(row: DatasetRow) -> Iterator[tuple[int, str]]:
    """The same of a row, by answer."""
    step, held = -1, list[str]()
    for message in messages_of(row):
        if role_of(message) == "assistant":
            if step >= 0:
                yield step, "\n".join(held)
                held = []
            step += 1
        held.append(_words(pieces_of(message)))
    yield max(step, 0), "\n".join(held)


def _words(found: Iterable[Piece]) -> str:
    return "\n".join(f"{piece.name} {piece.text[:LONGEST]}" for piece in found if piece.kind != "image")
