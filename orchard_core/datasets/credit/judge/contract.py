"""What a judge gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from pydantic import JsonValue

from orchard_core.datasets.credit.estimator import CostPlan
from orchard_core.datasets.credit.judge.view import GoldOutcome, TrajectoryView
from orchard_core.types.credit import ValuePoint
from orchard_core.types.model import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What came of asking a judge once."""

    steps: tuple[ValuePoint, ...] = ()
    """Key steps, in order of turns; none when there is an error."""
    error: str = ""
    """Why there are none."""
    again: bool = False
    """The judge could not be had; another start may ask again."""
    cost_usd: float | None = 0.0
    """US dollars; None: unknown."""
    usage: Usage = field(default_factory=Usage)
    """Token counts."""
    answers: tuple[str, ...] = ()
    """What it answered, word for word; the second is the repaired one."""
    prompt_sha256: str = ""
    """Hash of what it was asked."""


@runtime_checkable
class Judge(Protocol):
    """Values the key steps of one trajectory: V(s_t) = P(resolved | history up to t, outcome)."""

    @property
    def settings(self) -> Mapping[str, JsonValue]:
        """What decides its values, such as the model and the prompt."""

    def cost(self, view: TrajectoryView, outcome: GoldOutcome) -> CostPlan:
        """What asking is expected to take. Raises ConfigError."""

    async def judge(self, view: TrajectoryView, outcome: GoldOutcome) -> Judgement:
        """Ask. What fails is a Judgement with an error. Raises ConfigError when no question can be asked."""

    async def close(self) -> None:
        """Give back what is held."""
