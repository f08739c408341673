"""Rollouts, plans and configurations for tests."""

from __future__ import annotations

from orchard_core import (
    Attribution,
    CallTimings,
    ErrorInfo,
    HarnessResult,
    Message,
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
from orchard_core.rollout.identity import rollout_id
from orchard_core.rollout.store.entry import Planned
from orchard_core.types.model import Dialect


def make_task(name: str = "one", **fields: object) -> Task:
    return Task(id=name, taskset="set", instruction=f"Do {name}.", **fields)  # type: ignore[arg-type]


def make_planned(task: str = "one", attempt: int = 0) -> Planned:
    return Planned(id=make_id(task, attempt), task=task, attempt=attempt, seed=attempt)


def make_id(task: str, attempt: int) -> str:
    return rollout_id(taskset="set", task=task, harness="fake", model="fake", attempt=attempt)


def make_config(**fields: object) -> RunConfig:
    values = {"taskset": "set", "harness": "fake", "harness_version": "1", "model": "fake", "sandbox": "fake"}
    return RunConfig(**(values | fields))  # type: ignore[arg-type]


def make_trajectory(turns: int = 1, text: str = "hello") -> Trajectory:
    messages = {
        f"m{turn}": Message(role="user", raw=f'{{"role":"user","content":"{text} {turn}"}}')
        for turn in range(turns)
    }
    calls = tuple(
        ModelCall(
            index=turn,
            dialect=Dialect.CHAT,
            messages=MessageRefs(base=turn - 1 if turn else None, keep=turn, added=(f"m{turn}",)),
            response=f"m{turn}",
            usage=Usage(input=10, output=3),
            cost_usd=0.0,
            timings=CallTimings(started_at=1.0 + turn),
        )
        for turn in range(turns)
    )
    return Trajectory(calls=calls, messages=messages)


def make_rollout(
    task: str = "one",
    attempt: int = 0,
    *,
    score: float | None = 1.0,
    outcome: Outcome = Outcome.COMPLETED,
    attribution: Attribution = Attribution.AGENT,
    error: str = "",
    turns: int = 1,
    tries: int = 1,
    **fields: object,
) -> Rollout:
    trajectory = make_trajectory(turns)
    values = {
        "result": HarnessResult(stop=StopReason.SUBMITTED, turns=turns),
        "reward": RewardResult(score=score) if score is not None else None,
        "error": ErrorInfo(kind="Some", phase=Phase.AGENT, message=error) if error else None,
        "task": make_task(task),
    }
    return Rollout(
        id=make_id(task, attempt),
        attempt=attempt,
        tries=tries,
        harness="fake",
        model="fake",
        outcome=outcome,
        attribution=attribution,
        agent_outcome=outcome,
        trajectory=trajectory,
        usage=trajectory.usage,
        cost_usd=trajectory.cost_usd,
        started_at=1.0,
        finished_at=3.0,
        provenance=Provenance(orchard="0", harness="fake 1", model="fake", provider="fake", image="host"),
        **(values | fields),  # type: ignore[arg-type]
    )
