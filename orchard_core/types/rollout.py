"""The record of one rollout."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Literal

from pydantic import Field, JsonValue

from orchard_core.types.base import Record
from orchard_core.types.harness import HarnessResult, Limits
from orchard_core.types.model import Usage
from orchard_core.types.reward import RewardResult
from orchard_core.types.task import Task
from orchard_core.types.trajectory import Trajectory

SCHEMA_VERSION = 1
"""Version of the stored Rollout; readers refuse a newer one with a clear message."""


class Outcome(StrEnum):
    """How a rollout ended. A failed rollout is data, not a crash."""

    COMPLETED = "completed"
    """The agent finished by itself."""
    TRUNCATED = "truncated"
    """Turns, tokens, calls or cost ran out; what was done is still verified."""
    TIMED_OUT = "timed_out"
    """The agent's wall clock ran out; what was done is still verified."""
    HARNESS_FAILED = "harness_failed"
    """The harness crashed, hung or broke its contract."""
    MODEL_FAILED = "model_failed"
    """The model could not be had."""
    SANDBOX_FAILED = "sandbox_failed"
    """The sandbox was not created or died; attribution says who did it."""
    VERIFIER_FAILED = "verifier_failed"
    """The agent ran, but no score could be had; grading can be repeated."""
    TASK_INVALID = "task_invalid"
    """The task's own files are broken."""
    CANCELLED = "cancelled"
    """The user or the scheduler stopped it."""


class Attribution(StrEnum):
    """Whose doing an outcome is."""

    AGENT = "agent"
    """The policy: its actions, or its want of them."""
    MODEL = "model"
    """The model server."""
    HARNESS = "harness"
    """The harness plugin."""
    INFRASTRUCTURE = "infrastructure"
    """Sandbox provider, machine, network or a limit of ours."""
    TASK = "task"
    """The task's files, services or verifier."""
    USER = "user"
    """Cancelled by a person."""


class Phase(StrEnum):
    """The steps of a rollout, each with its own deadline and error class."""

    CREATE = "create"
    """The provider makes the sandbox."""
    PREPARE = "prepare"
    """The task set's session sets it up."""
    AGENT = "agent"
    """The harness runs."""
    COLLECT = "collect"
    """Declared artifacts are taken out."""
    VERIFY = "verify"
    """The reward is computed."""
    RECORD = "record"
    """The record is made durable."""
    CLOSE = "close"
    """Everything is torn down."""


class PhaseTiming(Record):
    """How long one phase took."""

    phase: Phase
    """Which."""
    started_at: float
    """Seconds since the epoch."""
    duration_s: float
    """Seconds."""


class ErrorInfo(Record):
    """The error that decided an outcome."""

    kind: str
    """Class name in orchard_core.errors, or of the foreign exception."""
    phase: Phase
    """Where it was raised."""
    message: str
    """What, where and what to do next."""
    status: int | None = None
    """HTTP status of the model server, when it refused."""
    limit_s: float | None = None
    """The limit that fired, seconds, when one did."""
    elapsed_s: float | None = None
    """What the phase had used by then, seconds."""


class Artifact(Record):
    """Something collected from the agent's sandbox, kept by content hash."""

    path: str
    """Absolute path inside the sandbox, or `harness:NAME` for a file the harness gave."""
    kind: Literal["file", "tree"]
    """A file's bytes, or a tar of a directory."""
    sha256: str
    """Hash of the blob, in hexadecimal."""
    size: int
    """Bytes of the blob."""


class Provenance(Record):
    """Enough to tell why two runs differ."""

    orchard: str
    """Version of orchard-core."""
    harness: str
    """Name and version of the harness plugin, and of the package behind it."""
    model: str
    """The model's written form."""
    provider: str
    """Name of the sandbox provider."""
    image: str
    """The image really used."""
    image_fallback: bool = False
    """The task named another image, and the user allowed the host's files instead."""
    prompt_digest: str = ""
    """Hash of the first request's messages and tools."""
    config_digest: str = ""
    """Hash of the run's resolved config."""
    plugins: Mapping[str, str] = Field(default_factory=dict)
    """Distribution to version, of every plugin loaded."""


class Rollout(Record):
    """One attempt at one task, from start to score."""

    schema_version: int = SCHEMA_VERSION
    """Version of this record's shape."""
    id: str
    """Unique within the run: task set, task, harness, model and attempt, hashed, so that resume finds it."""
    task: Task
    """The task as it was given."""
    attempt: int = 0
    """Which of the k attempts at this task, from 0."""
    tries: int = 1
    """How often it was started, failed for a reason that may be retried, and started again."""
    seed: int = 0
    """Seed handed to everything that draws."""
    harness: str
    """Name of the harness."""
    model: str
    """The model as the user named it."""
    limits: Limits = Limits()
    """The bounds it ran under."""
    outcome: Outcome
    """How it ended."""
    attribution: Attribution
    """Whose doing that is."""
    agent_outcome: Outcome | None = None
    """How the agent's run ended, before any verification; None when it never began."""
    error: ErrorInfo | None = None
    """What decided the outcome, when something failed or a limit fired."""
    result: HarnessResult | None = None
    """What the harness reported."""
    reward: RewardResult | None = None
    """The score; None when verification did not run."""
    trajectory: Trajectory = Trajectory()
    """Every model call."""
    usage: Usage = Usage()
    """Token counts over all calls."""
    cost_usd: float | None = None
    """US dollars; None: unknown."""
    artifacts: tuple[Artifact, ...] = ()
    """What was collected."""
    timings: tuple[PhaseTiming, ...] = ()
    """How long each phase took."""
    started_at: float
    """Seconds since the epoch."""
    finished_at: float
    """Seconds since the epoch."""
    provenance: Provenance
    """Versions and hashes."""
    metadata: Mapping[str, JsonValue] = Field(default_factory=dict)
    """For plugins; never read by the core."""

    @property
    def score(self) -> float | None:
        """The reward's score, None when there is none."""
        return self.reward.score if self.reward else None


class RolloutGroup(Record):
    """Several rollouts of one task, as group-relative training takes them."""

    task_id: str
    """The task."""
    rollouts: tuple[Rollout, ...]
    """The members."""
    pass_rate: float | None = None
    """Share with reward > 0 of all attempts that were scored, or have no score by the agent's own doing,
    selected or not: the unbiased figure beside the group."""
