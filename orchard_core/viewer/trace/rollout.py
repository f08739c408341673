"""A rollout's record as a conversation to read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from orchard_core.errors import RecordCorrupt
from orchard_core.evals.html import words
from orchard_core.gateway.sample_report import build_sample_report
from orchard_core.types.credit import Credit
from orchard_core.types.rollout import Rollout
from orchard_core.types.sample_report import CallPlace, Relation, SampleReport
from orchard_core.viewer.keys import key_of
from orchard_core.viewer.pieces import Piece, pieces
from orchard_core.viewer.trace.curves import credit_curve
from orchard_core.viewer.trace.cutting import MESSAGES, Room, left_out
from orchard_core.viewer.trace.facts import artifacts, call_facts, problems, provenance, rollout_facts
from orchard_core.viewer.trace.layout import Place, layout, main_calls
from orchard_core.viewer.trace.parts import Curve, Said, Shown, ThreadView, Trace, TurnView
from orchard_core.viewer.trace.tools import tools_of

PAGE = 200
"""Turns of one page."""
_MOST_CALLS, _MOST_LISTED = 1_500, 1_200_000
"""Calls, and messages listed over all calls, up to which threads and samples are worked out on demand."""


class ReadRollout:
    """A record and what was worked out of it once."""

    def __init__(self, rollout: Rollout) -> None:
        self.rollout = rollout
        """The record."""
        self.places: Sequence[Place] = layout(rollout.trajectory)
        """One a call."""

    @cached_property
    def report(self) -> SampleReport | None:
        """Threads and samples; None: it has too many calls, or calls are missing. The costly part."""
        listed = sum(place.kept + len(place.before) + 2 for place in self.places)
        if len(self.places) > _MOST_CALLS or listed > _MOST_LISTED:
            return None
        try:
            return build_sample_report(self.rollout.trajectory)
        except RecordCorrupt:
            return None


def rollout_trace(
    read: ReadRollout,
    assigned: Mapping[str, Credit | str],
    *,
    first: int = 0,
    room: Room | None = None,
    samples: bool = True,
) -> Trace:
    """The page of its turns from `first` on; without `samples`, threads are told by messages alone."""
    rollout, room = read.rollout, room or Room()
    report = read.report if samples else None
    main = report.threads[0].calls if report and report.threads else main_calls(read.places)
    curves = tuple(credit_curve(name, credit, main) for name, credit in assigned.items())
    curve = next((c for c in curves if not c.error), None)
    reader = _Reader(read=read, report=report, main=main, room=room, curve=curve)
    shown = read.places[first : first + PAGE]
    return Trace(
        facts=rollout_facts(rollout),
        turns=tuple(reader.turn(place) for place in shown),
        first=first,
        total=len(read.places),
        instruction=room.show(Piece(kind="text", text=rollout.task.instruction), "=instruction"),
        error=_error(rollout, room),
        tools=tools_of(rollout.trajectory),
        curves=curves,
        threads=tuple(_threads(report)),
        samples=_samples(report) if samples else "",
        verdict=tuple(_verdict(rollout, room)),
        artifacts=artifacts(rollout),
        provenance=provenance(rollout),
    )


def rollout_piece(rollout: Rollout, ref: str) -> Piece | None:
    """The whole piece that a `Shown` names; None: there is no such."""
    if ref.startswith("="):
        texts = _texts(rollout)
        return Piece(kind="text", text=texts[ref]) if ref in texts else None
    name, _, number = ref.rpartition(".")
    messages = rollout.trajectory.messages
    message = messages.get(name) or next((messages[own] for own in messages if key_of(own) == name), None)
    if message is None or not number.isdigit() or len(number) > 6:
        return None
    found = pieces(message.raw)
    return found[int(number)] if int(number) < len(found) else None


@dataclass(slots=True, kw_only=True)
class _Reader:
    """Makes the turns of one page."""

    read: ReadRollout
    report: SampleReport | None
    main: Sequence[int]
    room: Room
    curve: Curve | None
    steps: dict[int, int] = field(init=False)
    told: dict[int, CallPlace] = field(init=False)

    def __post_init__(self) -> None:
        self.steps = {call: step for step, call in enumerate(self.main)}
        self.told = {place.call: place for place in self.report.calls} if self.report else {}

    def turn(self, place: Place) -> TurnView:
        """One call."""
        call, step = place.call, self.steps.get(place.call.index)
        told = self.told.get(call.index)
        value, rise, credited = _credit(self.curve, step)
        answer = self._said([call.response] if call.response else [], mask=_mask(credited))
        return TurnView(
            number=call.index,
            step=step,
            before=self._said(place.before),
            answer=next(iter(answer), None),
            after=self._said(place.after),
            facts=call_facts(call),
            thread=_thread(self.report, told),
            notes=tuple(_notes(place, told)),
            problems=tuple(problems(call)),
            sampled=len(call.completion_tokens or ()),
            trained=told.trained if told is not None and told.sampled is not None else None,
            value=value,
            rise=rise,
            credited=credited,
        )

    def _said(self, names: Sequence[str], mask: int | None = None) -> tuple[Said, ...]:
        found = []
        messages = self.read.rollout.trajectory.messages
        for name in names[:MESSAGES]:
            message = messages.get(name)
            if message is None:
                found.append(Said(role="?", pieces=(), note=f"the record lacks this message ({name[:40]})"))
                continue
            shown = [
                self.room.show(piece, f"{key_of(name)}.{at}") for at, piece in enumerate(pieces(message.raw))
            ]
            found.append(Said(role=message.role, pieces=tuple(shown), mask=mask))
        if len(names) > MESSAGES:
            found.append(left_out(len(names) - MESSAGES))
        return tuple(found)


def _mask(credited: bool | None) -> int | None:
    return None if credited is None else int(credited)


def _credit(curve: Curve | None, step: int | None) -> tuple[float | None, float | None, bool | None]:
    if curve is None or step is None:
        return None, None, None
    values = [point.value for point in curve.points[step : step + 2]]
    rise = values[1] - values[0] if len(values) == 2 else None
    credited = bool(curve.trained[step]) if step < len(curve.trained) else None
    return (values[0] if values else None), rise, credited


def _thread(report: SampleReport | None, told: CallPlace | None) -> str:
    if report is None or told is None:
        return ""
    if told.thread is None:
        return "unused"
    return "" if told.thread == 0 else f"{report.threads[told.thread].kind.value} {told.thread}"


def _notes(place: Place, told: CallPlace | None) -> Iterable[str]:
    if told is not None and told.relation is Relation.FORKED and told.follows is not None:
        yield f"leaves the conversation after turn {told.follows}"
    if place.follows is None and place.kept:
        yield f"its request keeps {words.plural(place.kept, 'message')} of an earlier one"
    if place.changed:
        yield f"turn {place.follows}'s answer was sent back in other words"
    if told is not None and told.sampled and told.trained < told.sampled:
        yield told.why
    if place.call.dropped:
        lost = ", ".join(f"{name[:60]} {count} times" for name, count in list(place.call.dropped.items())[:8])
        yield f"left out by the translation: {lost}"


def _threads(report: SampleReport | None) -> Iterable[ThreadView]:
    calls = {place.call: place for place in report.calls} if report else {}
    for number, thread in enumerate(report.threads if report else ()):
        places = [calls[call] for call in thread.calls]
        yield ThreadView(
            name="main" if number == 0 else f"{thread.kind.value} {number}",
            kind=thread.label.value,
            calls=thread.calls,
            sampled=sum(place.sampled or 0 for place in places),
            trained=sum(place.trained for place in places),
        )


def _samples(report: SampleReport | None) -> str:
    if report is None:
        return "too many calls to work out samples here; orchard samples does"
    if report.unusable:
        return f"no training samples: {report.unusable}"
    share = report.trained / report.sampled if report.sampled else 0.0
    return f"{report.trained:,} of {report.sampled:,} sampled tokens are trained ({words.percent(share)})"


def _error(rollout: Rollout, room: Room) -> tuple[str, Shown] | None:
    if rollout.error is None:
        return None
    text = room.show(Piece(kind="text", text=rollout.error.message), "=error")
    return f"{rollout.error.kind} in {rollout.error.phase.value}", text


_HEADS = {
    "=answer": "Final answer",
    "=stop": "What the harness said",
    "=reason": "Judged",
    "=log": "Verifier's log",
}


def _texts(rollout: Rollout) -> dict[str, str]:
    result, reward = rollout.result, rollout.reward
    return {
        "=instruction": rollout.task.instruction,
        "=error": rollout.error.message if rollout.error else "",
        "=answer": (result.answer or "") if result else "",
        "=stop": result.message if result else "",
        "=reason": reward.reason if reward else "",
        "=log": reward.log if reward else "",
    }


def _verdict(rollout: Rollout, room: Room) -> Iterable[tuple[str, Shown]]:
    texts = _texts(rollout)
    for ref, head in _HEADS.items():
        if texts[ref]:
            yield head, room.show(Piece(kind="text", text=texts[ref]), ref)
