"""Recorded rollouts, rows, runs and credits for tests."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from orchard_core import (
    CallTimings,
    Credit,
    DatasetRow,
    HarnessResult,
    Message,
    MessageRefs,
    ModelCall,
    Outcome,
    Provenance,
    RewardResult,
    Rollout,
    StopReason,
    Task,
    Trajectory,
    ValuePoint,
)
from orchard_core.datasets.credit.estimator import Item
from orchard_core.datasets.credit.rules import CreditRules
from orchard_core.datasets.rows import rollout_rows
from orchard_core.rollout.config import RunConfig
from orchard_core.rollout.store.entry import Planned
from orchard_core.rollout.store.writer import RunWriter
from orchard_core.types.model import Dialect
from orchard_core.types.rollout import Attribution

RULES = CreditRules()


def make_trajectory(turns: int, *, observation: str = "ok") -> Trajectory:
    """T turns of one conversation: `command N`, and what came back for it."""
    messages: dict[str, Message] = {}

    def keep(name: str, role: str, **fields: object) -> str:
        messages[name] = Message(role=role, raw=json.dumps({"role": role, **fields}))
        return name

    added = (keep("s", "system", content="You act."), keep("u", "user", content="Mend the parser."))
    calls: list[ModelCall] = []
    for turn in range(turns):
        call = {"id": f"c{turn}", "type": "function"}
        arguments = json.dumps({"command": f"command {turn}"})
        said = [{**call, "function": {"name": "bash", "arguments": arguments}}]
        answer = keep(f"a{turn}", "assistant", content=f"step {turn}", tool_calls=said)
        calls.append(
            ModelCall(
                index=turn,
                dialect=Dialect.CHAT,
                messages=MessageRefs(
                    base=turn - 1 if turn else None, keep=2 * turn if turn else 0, added=added
                ),
                response=answer,
                cost_usd=0.0,
                timings=CallTimings(started_at=1.0 + turn),
            )
        )
        seen = keep(f"o{turn}", "tool", content=f"{observation} {turn}", tool_call_id=f"c{turn}")
        added = (answer, seen)
    last = (f"o{turns - 1}",) if turns else ()
    return Trajectory(calls=tuple(calls), messages=messages, last_observations=last)


def make_rollout(
    name: str = "one",
    *,
    turns: int = 4,
    score: float | None = 0.0,
    observation: str = "ok",
    log: str = "2 of 3 tests failed",
    tries: int = 1,
    outcome: Outcome = Outcome.COMPLETED,
) -> Rollout:
    """A rollout whose id is its name, of the task of that name."""
    lost = outcome is Outcome.SANDBOX_FAILED
    return Rollout(
        id=name,
        task=Task(id=name, taskset="set", instruction="Mend the parser."),
        tries=tries,
        harness="react",
        model="actor",
        outcome=outcome,
        attribution=Attribution.INFRASTRUCTURE if lost else Attribution.AGENT,
        result=HarnessResult(stop=StopReason.SUBMITTED, turns=turns),
        reward=None if score is None else RewardResult(score=score, reason="tests", log=log),
        trajectory=make_trajectory(turns, observation=observation),
        started_at=1.0,
        finished_at=2.0,
        provenance=Provenance(orchard="0", harness="react 1", model="actor", provider="fake", image="host"),
    )


def make_item(rollout: Rollout, directory: Path | None = None) -> Item:
    return Item(row=make_row(rollout), rollout=rollout, directory=directory)


def make_row(rollout: Rollout) -> DatasetRow:
    return rollout_rows(rollout)[0]


def make_credit(
    name: str = "one", values: Sequence[float] = (0.1, 0.4, 0.4, 0.2), *, rules: CreditRules = RULES
) -> Credit:
    """An unresolved rollout's credit with these values, the last one after its last answer."""
    curve = [ValuePoint(turn=turn, value=value) for turn, value in enumerate(values)]
    return rules.credit(rollout=name, estimator="judge", curve=curve, cost_usd=0.5)


async def write_run(root: Path, rollouts: Sequence[Rollout], **config: object) -> Path:
    """A run directory that holds these rollouts."""
    fields = {
        "taskset": "set",
        "harness": "react",
        "harness_version": "1",
        "model": "actor",
        "sandbox": "fake",
    }
    made = RunConfig(**(fields | config))  # type: ignore[arg-type]
    async with await RunWriter.open(root, made, resume=root.exists()) as writer:
        known = writer.state.planned
        missing = [item for item in rollouts if item.id not in known]
        await writer.plan([Planned(id=item.id, task=item.task.id, attempt=0, seed=0) for item in missing])
        for rollout in rollouts:
            await writer.finish(rollout)
    return root


def steps(*pairs: tuple[int, float]) -> str:
    """A judge's answer."""
    return json.dumps([{"turn": turn, "value": value, "reason": f"at {turn}"} for turn, value in pairs])
