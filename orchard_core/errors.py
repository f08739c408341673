"""Every error Orchard raises, in one tree.

    OrchardError
    |- ConfigError                  what the user asked for cannot be: mend the command or the recipe
    |- PluginError                  UnknownPlugin, PluginNotInstalled, PluginImportFailed, PluginApiMismatch,
    |                               DuplicatePlugin
    |- SandboxError                 attributed to infrastructure unless said otherwise
    |  |- SandboxUnsupported        a provider lacks a capability; raised before anything starts
    |  |- SandboxExists             the name asked for is taken
    |  |- SandboxUnavailable        this host cannot give the isolation asked for
    |  |  `- ServiceOverloaded      a sandbox service or cluster has no room now, and says when to come again
    |  |- SandboxCreateFailed       creation was tried and failed
    |  |                            ImagePullFailed, QuotaExceeded, Unschedulable, SpecRefused
    |  |- SandboxGone               the sandbox, or the agent inside it, is dead
    |  |                            SandboxOutOfMemory, SandboxEvicted, SandboxPreempted, NodeLost,
    |  |                            SandboxExpired
    |  |- SnapshotMissing           the provider has no such snapshot: discarded, or another driver's
    |  |- SandboxConnectionLost     the agent could not be reached; what was running may still run
    |  |- AgentRefused              wrong token, wrong sandbox id, or a scope that does not suffice
    |  |- PortRefused               nothing listens on a port inside
    |  |- ExecError                 CwdMissing, CommandNotFound, NoShell, UserUnknown, ExecIdTaken,
    |  |                            ExecForgotten, StdinClosed
    |  `- FileError                 FileMissing, FileExists, FileDenied, NotADirectory, IsADirectory,
    |                               RangeRefused, ArchiveEscape, DiskFull
    |- ModelError                   ModelUnavailable, ModelRateLimited, ModelTimeout, ModelRejected,
    |  |                            ModelReplyMalformed, SessionClosed
    |  |- ContextExceeded           the conversation no longer fits the model; a ModelRejected
    |  `- BudgetExceeded            a session's tokens, calls, cost or wall clock ran out (`kind` says which)
    |- HarnessError                 the harness itself broke (not the agent's mistakes, which are data)
    |                               HarnessCrashed, HarnessHung, HarnessFlooded, HarnessHomeLost
    |- RewardError                  VerifierFailed, VerifierTimedOut, RewardMissing, RegradeRefused
    |- BlobTooLarge                 an artifact is larger than its cap
    |- TaskError                    TaskSetNotFound, TaskInvalid
    |- RunFutile                    rollouts of a run failed alike until no other was worth starting
    |- WorkersFailed                a driver of a shared run died again and again
    |- DeadlineExceeded             a named phase ran past its own limit
    |- StoreError                   RunExists, RunNotFound, RunLocked, RecordCorrupt
    `- DatasetError                 DatasetNotFound, DatasetExists, DatasetLocked, DatasetCorrupt (names file,
                                    row and field), FormatUnknown, FormatUnsupported, CreditRefused,
                                    MixRefused

A message says what happened, where, and what to do next; the last part travels as `hint` so that a
terminal can set it apart. Catch the narrowest class you can name, at a border that is named in the docs.
"""

from __future__ import annotations


class OrchardError(Exception):
    """Root of the tree. `hint` is one sentence or command that mends the matter, or empty."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n  hint: {self.hint}" if self.hint else self.message


class ConfigError(OrchardError):
    """A flag, recipe field or plugin option is wrong; nothing has started."""


class PluginError(OrchardError):
    """A plugin could not be found or loaded."""


class UnknownPlugin(PluginError):
    """No plugin of that kind has this name, and no known distribution offers it."""


class PluginNotInstalled(PluginError):
    """The name is known, but the distribution (or extra) that offers it is not installed."""


class PluginImportFailed(PluginError):
    """The plugin is installed, but importing or registering it raised."""


class PluginApiMismatch(PluginError):
    """The plugin was written for another version of the plugin API."""


class DuplicatePlugin(PluginError):
    """Two distributions offer the same name of the same kind."""


class SandboxError(OrchardError):
    """Something about a sandbox failed."""


class SandboxUnsupported(SandboxError):
    """The provider lacks a capability that the spec or the caller needs."""


class SandboxUnavailable(SandboxError):
    """The host cannot give the isolation asked for; `hint` names each way out."""


class ServiceOverloaded(SandboxUnavailable):
    """A sandbox service or a cluster has no room now. `retry_after_s` says when to come again, if known."""

    def __init__(self, message: str, *, retry_after_s: float | None = None, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.retry_after_s = retry_after_s


class SandboxCreateFailed(SandboxError):
    """The sandbox was asked for and did not come up."""


class ImagePullFailed(SandboxCreateFailed):
    """The image could not be fetched: its name, the registry, or the credentials are wrong."""


class QuotaExceeded(SandboxCreateFailed):
    """A quota leaves no room for the sandbox: of the cluster's namespace, or of the tenant."""


class Unschedulable(SandboxCreateFailed):
    """No node can take the sandbox, and none was added within the grace for autoscaling."""


class SpecRefused(SandboxCreateFailed):
    """The cluster or the container engine refuses what the sandbox was asked to be."""


class SandboxGone(SandboxError):
    """The sandbox is dead: closed, expired, killed from inside or from outside.

    `by` is `agent` (it killed or exhausted its own sandbox) or `infrastructure` when the provider can
    tell, else empty.
    """

    def __init__(self, message: str, *, by: str = "", hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.by = by


class SandboxOutOfMemory(SandboxGone):
    """What ran inside used more memory than the sandbox has, and the kernel ended it; `by` is `agent`."""


class SandboxEvicted(SandboxGone):
    """The node ran short of something and put the sandbox out."""


class SandboxPreempted(SandboxGone):
    """A more important pod, or the cloud that takes a spot node back, put the sandbox out."""


class NodeLost(SandboxGone):
    """The node that the sandbox ran on is gone or does not answer."""


class SandboxExpired(SandboxGone):
    """Its TTL, its idle TTL or its deadline in the cluster has passed."""


class SandboxExists(SandboxError):
    """The name asked for belongs to a sandbox that stands, whoever made it."""


class SnapshotMissing(SandboxError):
    """The provider has no such snapshot: it was discarded, or its provider closed, or it is another's."""


class SandboxConnectionLost(SandboxError):
    """The agent stopped answering; re-attaching within the bounds failed."""


class AgentRefused(SandboxError):
    """The agent did not accept the token, the sandbox id or the scope of a call."""


class ExecError(SandboxError):
    """A command could not be started (a command that ran and failed is an ExecResult)."""


class CwdMissing(ExecError):
    """The working directory does not exist or cannot be entered."""


class CommandNotFound(ExecError):
    """argv[0] does not exist or may not be executed."""


class NoShell(ExecError):
    """A shell string was given, and the image has no shell; pass argv instead."""


class UserUnknown(ExecError):
    """The user does not exist inside, or the agent may not switch to it."""


class ExecIdTaken(ExecError):
    """Another command of this sandbox has the id; nothing was started."""


class ExecForgotten(ExecError):
    """The run with this id ended long ago and its record was dropped; it is never run again."""


class StdinClosed(ExecError):
    """The command no longer reads its input."""


class PortRefused(SandboxError):
    """Nothing listens on that port inside."""


class FileError(SandboxError):
    """A file operation inside a sandbox failed."""


class FileMissing(FileError):
    """No such path."""


class FileExists(FileError):
    """The path exists already."""


class FileDenied(FileError):
    """The sandbox's user may not do this to the path."""


class NotADirectory(FileError):
    """A directory was needed."""


class IsADirectory(FileError):
    """A regular file was needed."""


class RangeRefused(FileError):
    """The file is shorter than the offset asked for."""


class ArchiveEscape(FileError):
    """An archive member would leave its target directory; nothing more of it was unpacked."""


class DiskFull(FileError):
    """The sandbox's disk or its quota is full."""


class ModelError(OrchardError):
    """A model call failed."""


class ModelUnavailable(ModelError):
    """The upstream could not be reached or answered 5xx until the retries ran out.

    `retry_after_s` is the pause the upstream asked for, seconds, None when it did not say.
    """

    def __init__(self, message: str, *, retry_after_s: float | None = None, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.retry_after_s = retry_after_s


class ModelRateLimited(ModelError):
    """The upstream answered 429 until the retries ran out; `retry_after_s` as in ModelUnavailable."""

    def __init__(self, message: str, *, retry_after_s: float | None = None, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.retry_after_s = retry_after_s


class ModelTimeout(ModelError):
    """The upstream did not answer in time (`limit_s`)."""

    def __init__(self, message: str, *, limit_s: float, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.limit_s = limit_s


class ModelRejected(ModelError):
    """The upstream refused the request (4xx); `status` is its HTTP status, `body` its own words."""

    def __init__(self, message: str, *, status: int, body: str = "", hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.status = status
        self.body = body


class ContextExceeded(ModelRejected):
    """The conversation no longer fits the model."""


class ModelReplyMalformed(ModelError):
    """The upstream's answer is not what its protocol promises."""


class SessionClosed(ModelError):
    """The session's key was revoked: its rollout has ended."""


class BudgetExceeded(ModelError):
    """A session's budget ran out. `kind`: tokens, calls, cost or wall_clock; `limit` in that unit."""

    def __init__(self, message: str, *, kind: str, limit: float, used: float) -> None:
        super().__init__(message)
        self.kind = kind
        self.limit = limit
        self.used = used


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


class DatasetError(OrchardError):
    """Something about a dataset is wrong."""


class DatasetNotFound(DatasetError):
    """There is nothing at this path that can be read as rows."""


class DatasetExists(DatasetError):
    """What is to be written is there already; nothing of it was touched."""


class DatasetLocked(DatasetError):
    """Another live process is writing there."""


class DatasetCorrupt(DatasetError):
    """A file cannot be read as what it says it is; rows before the fault were given.

    `path` is the file, `row` the place of the row in it, from 0, and `field` the field; None where it is not
    known, and empty for a fault of the whole row.
    """

    def __init__(
        self, message: str, *, path: str, row: int | None = None, field: str = "", hint: str = ""
    ) -> None:
        where = path if row is None else f"{path}, row {row}"
        super().__init__(f"{where}, field {field}: {message}" if field else f"{where}: {message}", hint=hint)
        self.path = path
        self.row = row
        self.field = field


class FormatUnknown(DatasetError):
    """No format recognises the file, or none has this name."""


class FormatUnsupported(DatasetError):
    """The format cannot be written, or cannot hold what is to be written."""


class CreditRefused(DatasetError):
    """Credit cannot be assigned as asked: the harness cannot be replayed, nothing is unresolved, ..."""


class MixRefused(DatasetError):
    """Nothing is left of a mix's sources, or what is in them is refused by the recipe."""
