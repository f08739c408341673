"""What turns estimates into a credit, the same for every estimator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pydantic import Field, JsonValue, field_validator

from orchard_core.datasets.credit.curve import CurveEnd, Interpolation, full_curve
from orchard_core.datasets.credit.merge import merge_rule
from orchard_core.datasets.credit.segments import EPSILON, rise_segments, segment_mask
from orchard_core.types.base import Record
from orchard_core.types.credit import Credit, ValuePoint


class CreditRules(Record):
    """The choices of a curve and its segments."""

    epsilon: float = Field(default=EPSILON, gt=0.0, le=1.0)
    """The least credit of an answer within a rise."""
    interpolation: Interpolation = Interpolation.LINEAR
    """Between two estimated turns."""
    end: CurveEnd = CurveEnd.OUTCOME
    """What V(s_T) is."""
    merge: str = "none"
    """The merge rule: `none`, `gap:N` or `context:N`."""

    @field_validator("merge")
    @classmethod
    def _is_rule(cls, text: str) -> str:
        return str(merge_rule(text))

    def curve(
        self, points: Iterable[ValuePoint], turns: int, *, outcome: float = 0.0
    ) -> tuple[ValuePoint, ...]:
        """[T+1] The whole curve; `outcome` is what V(s_T) is pinned to under `end: outcome`."""
        end = outcome if self.end is CurveEnd.OUTCOME else None
        return full_curve(points, turns, interpolation=self.interpolation, end=end)

    def credit(
        self,
        *,
        rollout: str,
        estimator: str,
        curve: Sequence[ValuePoint],
        cost_usd: float | None = None,
        rollouts: int = 0,
        settings: Mapping[str, JsonValue] | None = None,
    ) -> Credit:
        """The credit of one unresolved rollout from its whole curve [T+1]."""
        turns = len(curve) - 1
        rises = rise_segments([point.value for point in curve], epsilon=self.epsilon)
        segments = merge_rule(self.merge)(rises, turns)
        return Credit(
            rollout=rollout,
            estimator=estimator,
            points=tuple(curve),
            segments=segments,
            mask=segment_mask(segments, turns),
            cost_usd=cost_usd,
            rollouts=rollouts,
            settings=settings or {},
        )


def resolved_credit(rollout: str, *, estimator: str, turns: int) -> Credit:
    """The credit of a rollout that passed: all of it is trained on, and nothing was estimated."""
    return Credit(rollout=rollout, estimator=estimator, resolved=True, mask=(1,) * turns, cost_usd=0.0)


def failed_credit(
    rollout: str,
    *,
    estimator: str,
    turns: int,
    error: str,
    again: bool = False,
    cost_usd: float | None = None,
) -> Credit:
    """The credit of a rollout that could not be estimated: nothing of it is trained on."""
    return Credit(
        rollout=rollout, estimator=estimator, mask=(0,) * turns, error=error, again=again, cost_usd=cost_usd
    )
