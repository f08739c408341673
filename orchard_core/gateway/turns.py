"""A trajectory read as turns: each call and what came back for it."""

from __future__ import annotations

from collections.abc import Sequence

from orchard_core.gateway.echo import same_answer
from orchard_core.gateway.expand import conversations
from orchard_core.types.model import Message, ModelCall
from orchard_core.types.trajectory import Trajectory, Turn


def turns(trajectory: Trajectory) -> list[Turn]:
    """One turn a call, in order. A call follows the one whose request and answer stand at its front.

    The observations are what the first request to follow added after the answer. For the last answer that no
    request follows they are the core's own log of tool results. Raises RecordCorrupt.
    """
    sent = conversations(trajectory)
    follows: dict[int, int | None] = {}
    seen: dict[int, tuple[Message, ...]] = {}
    for place, call in enumerate(trajectory.calls):
        before = _followed(trajectory, sent, trajectory.calls[:place], call)
        follows[call.index] = before
        if before is not None and before not in seen:
            added = sent[call.index][len(sent[before]) + 1 :]
            seen[before] = tuple(trajectory.messages[key] for key in added)
    last = [call.index for call in trajectory.calls if call.response is not None and call.index not in seen]
    if last and trajectory.last_observations:
        seen[last[-1]] = tuple(trajectory.messages[key] for key in trajectory.last_observations)
    return [
        Turn(call=call, observations=seen.get(call.index, ()), follows=follows[call.index])
        for call in trajectory.calls
    ]


def _followed(
    trajectory: Trajectory, sent: dict[int, tuple[str, ...]], earlier: Sequence[ModelCall], call: ModelCall
) -> int | None:
    """The call with the longest request that stands at the front with an answer after it, preferably its
    own unchanged."""
    mine = sent[call.index]
    best: tuple[int, bool, int] | None = None
    for other in earlier:
        theirs = sent[other.index]
        count = len(theirs)
        if other.response is None or count >= len(mine) or mine[:count] != theirs:
            continue
        echo = trajectory.messages[mine[count]]
        if echo.role != "assistant":
            continue
        rank = (count, same_answer(trajectory.messages[other.response].raw, echo.raw), other.index)
        if best is None or rank > best:
            best = rank
    return None if best is None else best[2]
