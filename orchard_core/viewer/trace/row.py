"""A dataset's row as a conversation to read."""

from __future__ import annotations

import json
from collections.abc import Iterable

from pydantic import JsonValue

from orchard_core.evals.html import words
from orchard_core.types.dataset import DatasetRow
from orchard_core.viewer.pieces import Piece, pieces_of
from orchard_core.viewer.trace.curves import row_curve
from orchard_core.viewer.trace.cutting import MESSAGES, Room, left_out
from orchard_core.viewer.trace.parts import Said, Shown, Trace, TurnView
from orchard_core.viewer.trace.rollout import PAGE
from orchard_core.viewer.trace.tools import tool_views

_MOST = 500


def row_trace(row: DatasetRow, *, first: int = 0, room: Room | None = None) -> Trace:
    """The page of its turns from `first` on; a turn is an assistant's message and what comes back for it."""
    reader = _Reader(row, room or Room())
    return Trace(
        facts=_facts(row),
        turns=tuple(reader.turns(first)),
        first=first,
        total=max(len(reader.starts), 1),
        instruction=reader.instruction(),
        tools=tool_views(row.tools),
        curves=(reader.curve,) if reader.curve is not None else (),
        samples=_samples(row, reader.masks),
        provenance=tuple(_provenance(row)),
    )


class _Reader:
    """Makes the turns of one page."""

    def __init__(self, row: DatasetRow, room: Room) -> None:
        self._row, self._room = row, room
        self._messages = messages_of(row)
        self._roles = [role_of(message) for message in self._messages]
        self.starts = [at for at, role in enumerate(self._roles) if role == "assistant"]
        self.masks = [row.mask[at] if at < len(row.mask) else 0 for at in self.starts]
        self.curve = row_curve(row.credit, row.values, self.masks) if row.values else None

    def instruction(self) -> Shown | None:
        """What the agent was told, where the row says it."""
        text = self._row.task_text
        return self._room.show(Piece(kind="text", text=text), "=instruction") if text else None

    def turns(self, first: int) -> Iterable[TurnView]:
        """From `first` on; of a conversation without answers one that holds everything."""
        if not self.starts:
            yield TurnView(
                number=0, step=None, before=self._said(range(len(self._messages))), answer=None, after=()
            )
        for step in range(first, min(first + PAGE, len(self.starts))):
            yield self._turn(step)

    def _turn(self, step: int) -> TurnView:
        at = self.starts[step]
        end = self.starts[step + 1] if step + 1 < len(self.starts) else len(self._messages)
        points = self.curve.points[step : step + 2] if self.curve is not None else ()
        return TurnView(
            number=step,
            step=step,
            before=self._said(range(at if step == 0 else 0)),
            answer=self._said(range(at, at + 1))[0],
            after=self._said(range(at + 1, end)),
            facts=_turn_facts(self._row, at),
            sampled=_sampled(self._row, at),
            value=points[0].value if points else None,
            rise=points[1].value - points[0].value if len(points) == 2 else None,
        )

    def _said(self, places: range) -> tuple[Said, ...]:
        found = [self._one(at) for at in places[:MESSAGES]]
        return (*found, left_out(len(places) - MESSAGES)) if len(places) > MESSAGES else tuple(found)

    def _one(self, at: int) -> Said:
        row, role = self._row, self._roles[at]
        parts = enumerate(pieces_of(self._messages[at]))
        shown = tuple(self._room.show(piece, f"{at}.{number}") for number, piece in parts)
        mask = row.mask[at] if at < len(row.mask) and role == "assistant" else None
        weight = row.weights[at] if at < len(row.weights) else 1.0
        return Said(role=role, pieces=shown, mask=mask, note=f"weight {weight:g}" if weight != 1.0 else "")


def row_piece(row: DatasetRow, ref: str) -> Piece | None:
    """The whole piece that a `Shown` names; None: there is no such."""
    if ref == "=instruction":
        return Piece(kind="text", text=row.task_text)
    name, _, number = ref.partition(".")
    if not (name.isdigit() and number.isdigit() and len(ref) < 16):
        return None
    messages = messages_of(row)
    found = pieces_of(messages[int(name)]) if int(name) < len(messages) else []
    return found[int(number)] if int(number) < len(found) else None


def messages_of(row: DatasetRow) -> list[JsonValue]:
    """Its messages; a text that is no JSON array is one message of its own."""
    try:
        given = json.loads(row.messages)
    except (ValueError, RecursionError):
        return [{"role": "?", "content": row.messages}]
    return given if isinstance(given, list) else [given]


def answer_of(row: DatasetRow, step: int) -> int | None:
    """Place of the assistant's message number `step`; None: there are not so many."""
    roles = (role_of(message) for message in messages_of(row))
    starts = [at for at, role in enumerate(roles) if role == "assistant"]
    return starts[step] if 0 <= step < len(starts) else None


def role_of(message: JsonValue) -> str:
    """Who said it, whatever it is."""
    return str(message.get("role") or "?")[:40] if isinstance(message, dict) else "?"


def _sampled(row: DatasetRow, message: int) -> int:
    answers = row.tokens.answers if row.tokens else ()
    return sum(span.stop - span.start for span in answers if span.message == message)


def _turn_facts(row: DatasetRow, message: int) -> tuple[tuple[str, str], ...]:
    count = _sampled(row, message)
    return (("out", words.count(count)),) if count else ()


def _facts(row: DatasetRow) -> tuple[tuple[str, str], ...]:
    exact = "" if row.token_count_exact else " (estimated)"
    found = {
        "score": "none" if row.reward is None else f"{row.reward:g}",
        "ended": row.outcome.value.replace("_", " ") if row.outcome else words.NONE,
        "whose doing": row.attribution.value if row.attribution else words.NONE,
        "conversation": row.label.value,
        "split": row.split or words.NONE,
        "source": row.source or words.NONE,
        "turns": f"{row.turns:,}",
        "tokens": f"{words.count(row.token_count)}{exact}",
        "credit": row.credit or "none",
    }
    return tuple((name, value[:_MOST]) for name, value in found.items())


def _samples(row: DatasetRow, masks: list[int]) -> str:
    ids = "token ids recorded" if row.tokens is not None else "no token ids"
    return f"{sum(masks):,} of {words.plural(len(masks), 'answer')} trained on; {ids}"


def _provenance(row: DatasetRow) -> Iterable[tuple[str, str]]:
    yield "row", row.id[:_MOST]
    yield "rollout", row.rollout[:_MOST]
    for name, value in (
        ("harness", row.harness), ("model", row.model), ("task set", row.taskset), ("task", row.task),
        ("attempt", f"{row.attempt}, seed {row.seed}"), ("tags", ", ".join(row.tags)),
    ):  # fmt: skip
        if value:
            yield name, value[:_MOST]
    for name, told in list(row.provenance.items())[:40]:
        yield name[:60], (told if isinstance(told, str) else json.dumps(told))[: 2 * _MOST]
