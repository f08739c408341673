"""Which messages stand where: read off what the calls say they add, in time linear in the calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orchard_core.types.model import ModelCall
from orchard_core.types.trajectory import Trajectory


@dataclass(slots=True, kw_only=True)
class Place:
    """One call."""

    call: ModelCall
    """The record."""
    before: tuple[str, ...]
    """Messages to show before its answer, by content hash."""
    after: tuple[str, ...] = ()
    """Messages that came back for its answer."""
    follows: int | None = None
    """Index of the call whose whole request and answer it keeps."""
    changed: str = ""
    """The answer of that call as it was sent back, where that differs."""
    kept: int = 0
    """Messages that it keeps of an earlier call."""


def layout(trajectory: Trajectory) -> list[Place]:
    """A place for each call, in order."""
    places: dict[int, Place] = {}
    sizes: dict[int, int] = {}
    answered: set[int] = set()
    for call in trajectory.calls:
        refs = call.messages
        base = refs.base if refs.base in places else None
        kept = min(refs.keep, sizes[base]) if base is not None else 0
        sizes[call.index] = kept + len(refs.added)
        place = Place(call=call, before=refs.added, kept=kept)
        places[call.index] = place
        if base is not None and kept == sizes[base] and _is_answer(trajectory, refs.added):
            _follow(places[base], place, answered)
    return _with_last(trajectory, list(places.values()))


def _is_answer(trajectory: Trajectory, added: Sequence[str]) -> bool:
    message = trajectory.messages.get(added[0]) if added else None
    return message is not None and message.role == "assistant"


def _follow(base: Place, place: Place, answered: set[int]) -> None:
    echo, new = place.before[0], place.before[1:]
    place.follows = base.call.index
    place.changed = echo if echo != base.call.response else ""
    place.before = new
    if base.call.index not in answered:
        answered.add(base.call.index)
        base.after, place.before = new, ()


def _with_last(trajectory: Trajectory, places: list[Place]) -> list[Place]:
    followed = {place.follows for place in places}
    for place in reversed(places):
        if place.call.response is not None and place.call.index not in followed:
            place.after = place.after or trajectory.last_observations
            break
    return places


def main_calls(places: Sequence[Place]) -> Sequence[int]:
    """Numbers of the calls of the longest conversation, as far as the messages tell; the first of equals."""
    lengths: dict[int, int] = {}
    before: dict[int, int | None] = {}
    for place in places:
        if place.call.response is not None:
            lengths[place.call.index] = lengths.get(place.follows if place.follows is not None else -1, 0) + 1
            before[place.call.index] = place.follows
    at: int | None = max(lengths, key=lengths.__getitem__, default=None)
    chain: list[int] = []
    while at is not None and at in before:
        chain.append(at)
        at = before[at]
    return chain[::-1]
