"""Recorded answers on their way back to a harness, and the model's own from a given call on."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from itertools import takewhile
from typing import NoReturn

from orchard_core.errors import ModelRejected
from orchard_core.gateway.contract import UpstreamRequest
from orchard_core.rollout.branching.recorded import Asked, RecordedCall, Recording, asked_by


class Replay:
    """One pass through a recording.

    Calls are recognised by what they ask and not by their order, so that side calls may come earlier or later
    than they did. A request that was not recorded, and comes before the model answers by itself, differs.
    """

    def __init__(
        self,
        recording: Recording,
        *,
        until: int | None,
        on_call: Callable[[int, int], None] = lambda _call, _index: None,
    ) -> None:
        """`until` is the index of the first call that the model answers by itself; None: there is none.
        `on_call(recorded index, index in this session)` hears of each call that was recognised, that one
        included; it may raise ModelError."""
        self._recording = recording
        self._until = until
        self._on_call = on_call
        self._left: dict[Asked, deque[RecordedCall]] = {}
        for recorded in recording.calls:
            self._left.setdefault(recorded.asked, deque()).append(recorded)
        self.live_from: int | None = None
        """Index, in this session, of the first call that was not replayed."""
        self.difference = ""
        """How a request differed; empty: none did."""
        self.over = asyncio.Event()
        """Nothing more is to be had of this pass, such as because a request differed."""

    def take(self, request: UpstreamRequest) -> RecordedCall | None:
        """The recorded call that this request is; None: the model answers it.

        Raises ModelRejected for a request that differs, and for each one after it.
        """
        if self.difference:
            raise self._refusal()
        if self.live_from is not None:
            return None
        asked = asked_by(request, self._recording.same)
        waiting = self._left.get(asked)
        if not waiting:
            self.differs(self._told(asked, request.index))
        recorded = waiting[0]
        if recorded.call.index == self._until:
            self.live_from = request.index
            self._on_call(recorded.call.index, request.index)
            return None
        waiting.popleft()
        self._on_call(recorded.call.index, request.index)
        return recorded

    def differs(self, how: str) -> NoReturn:
        """This pass is not the recorded rollout. Raises ModelRejected."""
        self.note(how)
        raise self._refusal()

    def note(self, how: str) -> None:
        """The same, for what is no request: the world differs. The first difference counts."""
        self.difference = self.difference or how
        self.over.set()

    def _refusal(self) -> ModelRejected:
        return ModelRejected(f"the replayed rollout differs: {self.difference}", status=409)

    def _told(self, asked: Asked, index: int) -> str:
        """Where a request leaves the recorded ones behind."""
        left = [recorded for waiting in self._left.values() for recorded in waiting]
        if not left:
            return f"call {index} was not recorded: the recording ends before it"
        nearest = max(left, key=lambda recorded: (_shared(recorded.asked, asked), -recorded.call.index))
        shared = _shared(nearest.asked, asked)
        theirs, mine = len(nearest.asked.messages), len(asked.messages)
        if shared == theirs == mine:
            return f"call {index} offers other tools than the recorded call {nearest.call.index}"
        return (
            f"call {index} is like the recorded call {nearest.call.index} in its first {shared} messages "
            f"and then differs ({mine} messages, {theirs} recorded)"
        )


def _shared(one: Asked, other: Asked) -> int:
    """How many messages two requests begin with alike."""
    pairs = zip(one.messages, other.messages, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
