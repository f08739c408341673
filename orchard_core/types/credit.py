"""Credit of the turns of one rollout: a value curve, its rises, and what to train on."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field, JsonValue

from orchard_core.types.base import Record

CREDIT_VERSION = 1
"""Version of Credit; readers refuse a newer one with a clear message."""


class ValuePoint(Record):
    """An estimate of V(s_t) = P(resolved | history up to turn t)."""

    turn: int
    """t, from 0: the state before the t-th answer; T: after the last."""
    value: float
    """Between 0 and 1."""
    estimated: bool = True
    """False: put in between its neighbours."""
    low: float | None = None
    """Lower end of its confidence interval, where one was measured."""
    high: float | None = None
    """Upper end."""
    samples: int = 0
    """Continuations that were measured, invalid ones left out."""
    invalid: int = 0
    """Continuations that could not be used."""
    reason: str = ""
    """What the judge said of this step."""


class RiseSegment(Record):
    """A stretch over which the value rises."""

    start: int
    """First turn whose answer is trained on."""
    stop: int
    """One past the last."""


class Credit(Record):
    """The credit of the main conversation's T turns."""

    schema_version: int = CREDIT_VERSION
    """Version of this record's shape."""
    rollout: str
    """Id of the rollout."""
    estimator: str
    """`judge`, `branch`, or a plugin's own."""
    points: tuple[ValuePoint, ...] = ()
    """[T+1] by turn."""
    segments: tuple[RiseSegment, ...] = ()
    """Rises, in order, after merging."""
    mask: tuple[int, ...] = ()
    """[T] 1: the turn's answer is trained on."""
    resolved: bool = False
    """The rollout passed: every turn is trained on, and nothing was estimated."""
    error: str = ""
    """Why there is no curve; the rollout is then left out of training, never taken whole."""
    again: bool = False
    """The error is none of the rollout's or the estimator's doing, such as a model that could not be had: the
    next start tries again."""
    cost_usd: float | None = None
    """US dollars spent on it; None: unknown."""
    rollouts: int = 0
    """Rollouts spent on it."""
    settings: Mapping[str, JsonValue] = Field(default_factory=dict)
    """What decides the result: judge, template version, epsilon, merge rule, interpolation, seeds."""

    @property
    def values(self) -> tuple[float, ...]:
        """[T+1] V(s_t)."""
        return tuple(point.value for point in self.points)
