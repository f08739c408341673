"""A trajectory read as turns: each call and what came back for it."""

from __future__ import annotations

from collections.abc import Sequence

from orchard_core.gateway.echo import same_answer
from orchard_core.gateway.expand import conversations
from orchard_core.gateway.prefixes import Prefixes
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
    earlier: Prefixes[ModelCall] = Prefixes()
    for call in trajectory.calls:
        before = followed(trajectory, sent[call.index], earlier)
        follows[call.index] = before
        if before is not None and before not in seen:
            added = sent[call.index][len(sent[before]) + 1 :]
            seen[before] = tuple(trajectory.messages[key] for key in added)
        if call.response is not None:
            earlier.put(sent[call.index], call)
    last = [call.index for call in trajectory.calls if call.response is not None and call.index not in seen]
    if last and trajectory.last_observations:
        seen[last[-1]] = tuple(trajectory.messages[key] for key in trajectory.last_observations)
    return [
        Turn(call=call, observations=seen.get(call.index, ()), follows=follows[call.index])
        for call in trajectory.calls
    ]


def followed(trajectory: Trajectory, mine: Sequence[str], earlier: Prefixes[ModelCall]) -> int | None:
    """The call with the longest request that stands at the front with an answer after it, preferably its
    own unchanged."""
    for count, calls in earlier.before(mine):
        echo = trajectory.messages[mine[count]]
        if echo.role == "assistant":
            ranks = [(is_echo(trajectory, call, echo), call.index) for call in calls]
            return max(ranks)[1]
    return None


def is_echo(trajectory: Trajectory, call: ModelCall, echo: Message) -> bool:
    """Whether a message sent back is the call's answer, unchanged."""
    answer = trajectory.messages.get(call.response or "")
    return answer is not None and same_answer(answer.raw, echo.raw)
