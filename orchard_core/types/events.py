"""What a run tells those who watch it. Events follow the journal; no record depends on one."""

from __future__ import annotations

from typing import Literal

from orchard_core.types.base import Record
from orchard_core.types.model import Usage
from orchard_core.types.rollout import Attribution, Outcome, Phase


class RunStarted(Record):
    """A run begins, or resumes."""

    type: Literal["run_started"] = "run_started"
    """Tells events apart."""
    run: str
    """The run directory."""
    planned: int
    """Rollouts the run consists of."""
    finished: int
    """Of these, finished before (resume)."""
    at: float
    """Seconds since the epoch."""


class RolloutStarted(Record):
    """A rollout takes a slot."""

    type: Literal["rollout_started"] = "rollout_started"
    """Tells events apart."""
    rollout: str
    """Its id."""
    task: str
    """The task's id."""
    attempt: int
    """Which attempt, from 0."""
    at: float
    """Seconds since the epoch."""


class PhaseStarted(Record):
    """A rollout enters a phase."""

    type: Literal["phase_started"] = "phase_started"
    """Tells events apart."""
    rollout: str
    """Its id."""
    phase: Phase
    """The phase."""
    at: float
    """Seconds since the epoch."""


class CallFinished(Record):
    """A model call was recorded."""

    type: Literal["call_finished"] = "call_finished"
    """Tells events apart."""
    rollout: str
    """Its id."""
    index: int
    """The call's index."""
    usage: Usage
    """Its token counts."""
    cost_usd: float | None
    """US dollars; None: unknown."""
    at: float
    """Seconds since the epoch."""


class RolloutFinished(Record):
    """A rollout is durable."""

    type: Literal["rollout_finished"] = "rollout_finished"
    """Tells events apart."""
    rollout: str
    """Its id."""
    task: str
    """The task's id."""
    attempt: int
    """Which attempt, from 0."""
    outcome: Outcome
    """How it ended."""
    attribution: Attribution
    """Whose doing that is."""
    score: float | None
    """The score, None when there is none."""
    usage: Usage
    """Token counts."""
    cost_usd: float | None
    """US dollars; None: unknown."""
    will_retry: bool = False
    """It failed for a reason that may be retried and is queued again; not yet in the store."""
    at: float
    """Seconds since the epoch."""


class RunFinished(Record):
    """A run ends."""

    type: Literal["run_finished"] = "run_finished"
    """Tells events apart."""
    run: str
    """The run directory."""
    finished: int
    """Rollouts finished in total."""
    cancelled: bool
    """The user stopped it."""
    at: float
    """Seconds since the epoch."""


Event = RunStarted | RolloutStarted | PhaseStarted | CallFinished | RolloutFinished | RunFinished
