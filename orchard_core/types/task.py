"""A task and its known solution."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from pydantic import Field, JsonValue

from orchard_core.types.base import Record


class VerifyIn(StrEnum):
    """Where a task's verifier runs."""

    FRESH = "fresh"
    """In a new sandbox, on the artifacts that the task declared. The default."""
    SAME_SANDBOX = "same_sandbox"
    """In the agent's own sandbox, after everything in it was killed; the reward is marked so."""


class Task(Record):
    """One problem for an agent. Its files, services and verifier stay with its task set."""

    id: str
    """Unique within the task set; safe as a file name: `[A-Za-z0-9._-]+`."""
    taskset: str
    """The task set as the user named it, such as `workbench:16`."""
    instruction: str
    """What the agent is told, word for word."""
    workdir: str = "/workspace"
    """Where the agent starts, an absolute path inside the sandbox."""
    agent_timeout_s: float = 600.0
    """Wall-clock limit of the agent's run, seconds; a run may be given less, never more."""
    verifier_timeout_s: float = 300.0
    """Wall-clock limit of the verifier, seconds."""
    verify_in: VerifyIn = VerifyIn.FRESH
    """Where the verifier runs."""
    artifacts: tuple[str, ...] = ()
    """Absolute paths (files or directories) collected before close: what a verifier or a regrade needs."""
    tags: tuple[str, ...] = ()
    """For filters and the breakdown of reports, such as a family, domain or difficulty."""
    digest: str = ""
    """Content hash of everything that defines the task, so that two runs can be compared."""
    metadata: Mapping[str, JsonValue] = Field(default_factory=dict)
    """Whatever else the source said; never read by the core."""


class SolutionStep(Record):
    """One command of a known solution."""

    command: str
    """A shell command, run in the task's working directory."""
    thought: str = ""
    """Why, in a sentence, as a demonstration would say it."""


class Solution(Record):
    """A known solution, as shell commands that an oracle plays one a turn."""

    steps: tuple[SolutionStep, ...]
    """In order. Each runs in a shell of its own: nothing but files carries over."""
    answer: str = ""
    """The final answer to submit, when the task asks for one."""
