"""What a judge is shown of a rollout."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchard_core.datasets.credit.apply import read_messages
from orchard_core.datasets.credit.estimator import Item
from orchard_core.evals.clean import clean
from orchard_core.evals.transcript import blocks
from orchard_core.types.dataset import DatasetRow
from orchard_core.types.model import Message
from orchard_core.types.task import Task

_MARK = {"text": "", "thought": "(thinks) ", "call": "(calls) "}


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnView:
    """One answer and what came back."""

    answer: str
    """Thought, text and calls."""
    observations: str
    """Tool results and whatever else came before the next answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrajectoryView:
    """The main conversation of one rollout as text."""

    rollout: str
    """The rollout's id."""
    model: str
    """The model that acted, as the user named it."""
    task: Task
    """The task; of a row without a run what the row tells of it."""
    seed: int
    """The rollout's seed."""
    run: Path | None
    """The run directory it lies in; None: a row without a run."""
    context: str
    """Everything before the first answer: the instructions and the task."""
    turns: tuple[TurnView, ...]
    """[T] In order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldOutcome:
    """What the task's own tests said in the end."""

    score: float | None
    """The score; None: there is none."""
    ended: str
    """How the agent's run ended, such as `completed` or `truncated`."""
    reason: str = ""
    """Why the score is what it is."""
    log: str = ""
    """The verifier's output."""
    parts: tuple[tuple[str, float], ...] = ()
    """Named parts of the score."""


def view_of(item: Item) -> TrajectoryView:
    """The main conversation. Raises DatasetCorrupt for messages that cannot be read."""
    row = item.row
    context: list[dict[str, Any]] = []
    turns: list[tuple[dict[str, Any], list[dict[str, Any]]]] = []
    for message in (*read_messages(row), *_last_observations(row)):
        if message.get("role") == "assistant":
            turns.append((message, []))
        else:
            (turns[-1][1] if turns else context).append(message)
    return TrajectoryView(
        rollout=row.rollout,
        model=row.model,
        task=item.rollout.task if item.rollout else _task(row),
        seed=row.seed,
        run=item.run,
        context=_said(context, roles=True),
        turns=tuple(
            TurnView(answer=_said([answer], roles=False), observations=_said(seen, roles=True))
            for answer, seen in turns
        ),
    )


def outcome_of(item: Item) -> GoldOutcome:
    """What the tests said; a row without a run knows the score alone."""
    row, rollout = item.row, item.rollout
    ended = row.outcome.value if row.outcome else "unknown"
    if rollout is None or rollout.reward is None:
        return GoldOutcome(score=row.reward, ended=ended)
    reward = rollout.reward
    return GoldOutcome(
        score=reward.score,
        ended=ended,
        reason=clean(reward.reason),
        log=clean(reward.log),
        parts=tuple(sorted((clean(name), value) for name, value in reward.breakdown.items())),
    )


def _task(row: DatasetRow) -> Task:
    return Task(id=row.task, taskset=row.taskset, instruction=row.task_text, tags=row.tags)


def _last_observations(row: DatasetRow) -> list[dict[str, Any]]:
    """Tool results that no request carried any more; they stand beside the messages."""
    last = row.metadata.get("last_observations")
    found = last if isinstance(last, list) else []
    return [message for message in found if isinstance(message, dict) and message.get("role") != "assistant"]


def _said(messages: Iterable[dict[str, Any]], *, roles: bool) -> str:
    texts = []
    for message in messages:
        role = str(message.get("role", ""))
        record = Message(role=role, raw=json.dumps(message))
        said = "\n".join(_MARK[block.kind] + block.text for block in blocks(record))
        texts.append(f"({clean(role)}) {said}" if roles else said)
    return "\n".join(texts)
