"""Finished rollouts as a report sees them."""

from __future__ import annotations

from orchard_core import (
    Attribution,
    CallTimings,
    ErrorInfo,
    HarnessResult,
    MessageRefs,
    ModelCall,
    Outcome,
    Phase,
    Provenance,
    RewardResult,
    Rollout,
    StopReason,
    Task,
    Trajectory,
    Usage,
)
from orchard_core.rollout.config import RunConfig
from orchard_core.rollout.store.entry import Planned
from orchard_core.types.model import Dialect


def make_planned(task: str, attempt: int, **fields: object) -> Planned:
    values = {"id": f"{task}-{attempt}", "task": task, "attempt": attempt, "seed": 0}
    return Planned(**(values | fields))  # type: ignore[arg-type]


def make_config(**fields: object) -> RunConfig:
    values = {"taskset": "set", "harness": "fake", "harness_version": "1", "model": "fake", "sandbox": "fake"}
    return RunConfig(**(values | fields))  # type: ignore[arg-type]


def make_rollout(
    task: str,
    attempt: int = 0,
    *,
    score: float | None = 1.0,
    turns: int = 1,
    outcome: Outcome = Outcome.COMPLETED,
    attribution: Attribution = Attribution.AGENT,
    error: str = "",
    cost_usd: float | None = 0.0,
    prompt_digest: str = "",
) -> Rollout:
    """Each turn takes 10 tokens in and 3 out; the whole takes 2 s."""
    return Rollout(
        id=f"{task}-{attempt}",
        task=Task(id=task, taskset="set", instruction=""),
        attempt=attempt,
        harness="fake",
        model="fake",
        outcome=outcome,
        attribution=attribution,
        error=ErrorInfo(kind=error, phase=Phase.AGENT, message="") if error else None,
        result=HarnessResult(stop=StopReason.SUBMITTED, turns=turns),
        reward=None if score is None else RewardResult(score=score),
        trajectory=Trajectory(calls=tuple(_call(index) for index in range(turns))),
        usage=Usage(input=10 * turns, output=3 * turns),
        cost_usd=cost_usd,
        started_at=1.0,
        finished_at=3.0,
        provenance=Provenance(
            orchard="0", harness="1", model="fake", provider="fake", image="host", prompt_digest=prompt_digest
        ),
    )


def _call(index: int) -> ModelCall:
    return ModelCall(
        index=index, dialect=Dialect.CHAT, messages=MessageRefs(), timings=CallTimings(started_at=1.0)
    )
