"""How one rollout is run, beside its limits."""

from __future__ import annotations

from orchard_core.types.base import Record


class PhaseLimits(Record):
    """The deadline of each phase, seconds. The agent's own is its task's, or less (`Limits`)."""

    create_s: float = 300.0
    """Making a sandbox, the verifier's too."""
    prepare_s: float = 600.0
    """The task set's set-up."""
    cancel_s: float = 15.0
    """Time a harness or reward has to end once it was told to; it is then left behind."""
    ending_s: float = 5.0
    """Time a harness has to end by itself once a tool ended its run; the model answers it no more."""
    collect_s: float = 180.0
    """Stopping the task's services and taking the artifacts out."""
    verify_extra_s: float = 180.0
    """Added to the task's own verifier limit, for the fresh sandbox and moving the artifacts."""
    close_s: float = 60.0
    """Tearing down."""
    probe_s: float = 60.0
    """Finding out who ended a sandbox."""


class RolloutSettings(Record):
    """What a rollout may do and how long each step may take."""

    phases: PhaseLimits = PhaseLimits()
    """Deadlines."""
    jitter_s: float = 0.0
    """Before creation each rollout waits a random time up to this, seconds, so that a thousand do not
    hit the provider at once."""
    max_artifact_bytes: int = 512 << 20
    """Largest single artifact, bytes."""
    allow_host_fallback: bool = False
    """A task that names an image the provider does not take runs on the host's files, which is recorded."""
    allow_shared_paths: bool = False
    """Tasks run on a provider whose absolute paths are the host's; only for tasks that name none."""
    verify_tries: int = 2
    """Tries at verification when its infrastructure fails, the agent's work being kept."""
