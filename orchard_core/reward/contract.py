"""What a reward gives, and what it is given."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from orchard_core.sandbox.contract import Sandbox
from orchard_core.types.harness import HarnessResult
from orchard_core.types.model import ModelEndpoint
from orchard_core.types.reward import RewardResult
from orchard_core.types.rollout import Artifact, Outcome
from orchard_core.types.sandbox import SandboxSpec
from orchard_core.types.task import Task
from orchard_core.types.trajectory import Trajectory


class Blobs(Protocol):
    """Read access to what was collected."""

    async def read(self, sha256: str) -> bytes:
        """The blob's bytes. Raises RecordCorrupt when they do not match the hash."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What the agent did and left."""

    task: Task
    """The task."""
    trajectory: Trajectory
    """Every model call."""
    outcome: Outcome
    """How the agent's run ended, before any verification."""
    result: HarnessResult | None = None
    """What the harness reported."""
    artifacts: Mapping[str, Artifact] = field(default_factory=dict)
    """What was collected, by path."""
    blobs: Blobs
    """Where the artifacts' bytes are."""


class Grading(Protocol):
    """What a reward may use to judge."""

    @property
    def own(self) -> Sandbox | None:
        """The agent's own sandbox, everything in it killed and its agent replaced; None when the task is
        judged from artifacts alone (always so in a regrade)."""

    @property
    def deadline_s(self) -> float:
        """Seconds left for judging when the reward was called."""

    def fresh(self, spec: SandboxSpec) -> AbstractAsyncContextManager[Sandbox]:
        """A clean sandbox, closed on exit."""

    def judge(self, name: str) -> AbstractAsyncContextManager[ModelEndpoint]:
        """A model to judge with, in a session that is recorded apart and never training data."""


@runtime_checkable
class Reward(Protocol):
    """Scores one rollout."""

    @property
    def name(self) -> str:
        """For reports and regrades."""

    @property
    def version(self) -> str:
        """Changes whenever the same evidence could be scored otherwise."""

    @property
    def needs_own_sandbox(self) -> bool:
        """It judges in the agent's own sandbox, so it cannot regrade."""

    async def score(self, evidence: Evidence, grading: Grading) -> RewardResult:
        """Score it. Raises VerifierFailed, VerifierTimedOut, RewardMissing when no score could be had."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """What a rollout might have left."""

    task: Task
    """The task; its declared artifacts are collected."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Files the agent left, by absolute path inside."""
    outcome: Outcome = Outcome.COMPLETED
    """How the agent's run ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Examples:
    """One rollout that deserves a reward's best score and one that does not."""

    solved: Example
    """The one."""
    failed: Example
    """The other."""


@runtime_checkable
class Exemplified(Protocol):
    """What a reward may offer beside `Reward`, so that `orchard check` can try it without its tests."""

    def examples(self) -> Examples:
        """One example of each kind."""
