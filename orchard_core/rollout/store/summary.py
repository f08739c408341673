"""The journal's line of a rollout."""

from __future__ import annotations

from orchard_core.rollout.retry import is_regradable
from orchard_core.rollout.store.entry import Finished, Spent
from orchard_core.types.rollout import Rollout


def summary(rollout: Rollout) -> Finished:
    """The journal's line of a rollout; where its frame lies is filled in when it is written."""
    return Finished(
        id=rollout.id,
        task=rollout.task.id,
        attempt=rollout.attempt,
        tries=rollout.tries,
        outcome=rollout.outcome,
        attribution=rollout.attribution,
        score=rollout.score,
        same_sandbox=rollout.reward.same_sandbox if rollout.reward else False,
        regradable=is_regradable(rollout),
        image_fallback=rollout.provenance.image_fallback,
        error=rollout.error.kind if rollout.error else None,
        turns=rollout.result.turns if rollout.result else len(rollout.trajectory.calls),
        calls=len(rollout.trajectory.calls),
        call_retries=_call_retries(rollout),
        usage=rollout.usage,
        cost_usd=rollout.cost_usd,
        started_at=rollout.started_at,
        finished_at=rollout.finished_at,
        prompt_digest=rollout.provenance.prompt_digest,
        shard=0,
        offset=0,
        length=0,
    )


def spent(rollout: Rollout) -> Spent:
    """What a try used up whose record is not kept."""
    return Spent(
        calls=len(rollout.trajectory.calls),
        call_retries=_call_retries(rollout),
        usage=rollout.usage,
        cost_usd=rollout.cost_usd,
    )


def _call_retries(rollout: Rollout) -> int:
    return sum(len(call.retries) for call in rollout.trajectory.calls)
