"""What a reward says."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from orchard_core.types.base import Record


class RewardResult(Record):
    """A score, or the reason why there is none."""

    score: float | None
    """Usually 0 to 1; None when it could not be had, which is never the same as 0."""
    breakdown: Mapping[str, float] = Field(default_factory=dict)
    """Named parts of the score."""
    reason: str = ""
    """For people: why the score is what it is, or why it is None."""
    same_sandbox: bool = False
    """Judged in the agent's own sandbox, which the agent may have prepared."""
    log: str = ""
    """The verifier's output, cut to its head and tail."""
    version: str = ""
    """Name and version of the reward, so that a regrade can be told apart."""
