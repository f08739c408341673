"""What happened between a harness and its model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import Field

from orchard_core.types.base import Record
from orchard_core.types.model import Message, ModelCall, Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One model call and the messages that came back for it."""

    call: ModelCall
    """The call."""
    observations: tuple[Message, ...]
    """Tool results (and anything else) that the next request of the same thread added after the answer;
    for the last turn, what the core's own tool log holds."""
    follows: int | None
    """Index of the call this one continues, None when it starts a thread."""


class Trajectory(Record):
    """All recorded calls of one rollout, with every message stored once."""

    calls: tuple[ModelCall, ...] = ()
    """In order of arrival."""
    messages: Mapping[str, Message] = Field(default_factory=dict)
    """Messages by content hash."""
    blobs: Mapping[str, str] = Field(default_factory=dict)
    """Tool definitions (JSON text) by content hash."""
    last_observations: tuple[str, ...] = ()
    """Content hashes of the tool results that no later request carries."""

    @property
    def usage(self) -> Usage:
        """Token counts over all calls."""
        total = Usage()
        for call in self.calls:
            total = total + call.usage
        return total

    @property
    def cost_usd(self) -> float | None:
        """US dollars over all calls; None as soon as one call's cost is unknown."""
        costs = [call.cost_usd for call in self.calls]
        known = [cost for cost in costs if cost is not None]
        return sum(known) if len(known) == len(costs) else None
