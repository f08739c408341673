"""What fails about tasks, their rollouts and runs."""

from __future__ import annotations

from orchard_core.errors._root import OrchardError


class HarnessError(OrchardError):
    """The harness crashed, hung or broke its contract."""


class HarnessCrashed(HarnessError):
    """A harness's program ended with an error, by a signal, or without saying how its run went."""


class HarnessHung(HarnessError):
    """A harness's program ran past its own limit (`limit_s`)."""

    def __init__(self, message: str, *, limit_s: float, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.limit_s = limit_s


class HarnessFlooded(HarnessError):
    """A harness's program wrote output without end and was stopped."""


class HarnessHomeLost(HarnessError):
    """The agent deleted the home of the program that drove it; what followed is the agent's doing."""


class RewardError(OrchardError):
    """A score could not be had. The score is then None, never 0."""


class VerifierFailed(RewardError):
    """The verifier crashed or its sandbox died."""


class VerifierTimedOut(RewardError):
    """The verifier ran past its own limit (`limit_s`)."""

    def __init__(self, message: str, *, limit_s: float, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.limit_s = limit_s


class RewardMissing(RewardError):
    """The verifier ended without writing a reward that can be read."""


class RegradeRefused(RewardError):
    """The rollout cannot be graded again: its task declared no artifacts."""


class BlobTooLarge(OrchardError):
    """What is being collected is larger than its cap; nothing of it was kept."""


class TaskError(OrchardError):
    """Something about tasks is wrong."""


class TaskSetNotFound(TaskError):
    """The task set's path or data does not exist."""


class TaskInvalid(TaskError):
    """A task's own files are broken; `hint` names the file and the mend."""


class RunFutile(OrchardError):
    """Rollouts in a row failed alike before the model answered at all; the rest was not started."""


class WorkersFailed(OrchardError):
    """A worker of a run died again and again; what all of them finished is in the run."""


class DeadlineExceeded(OrchardError):
    """The phase `phase` ran past `limit_s`; `elapsed_s` is what it had used."""

    def __init__(self, phase: str, *, limit_s: float, elapsed_s: float) -> None:
        super().__init__(f"{phase} ran past its limit of {limit_s:g} s (elapsed {elapsed_s:.1f} s)")
        self.phase = phase
        self.limit_s = limit_s
        self.elapsed_s = elapsed_s


class StoreError(OrchardError):
    """A run directory cannot be used as asked."""


class RunExists(StoreError):
    """The run directory holds a run already; resume it or choose another."""


class RunNotFound(StoreError):
    """There is no run at this path."""


class RunLocked(StoreError):
    """Another live process is writing this run."""


class RecordCorrupt(StoreError):
    """A stored record's checksum does not match; everything before it is intact."""
