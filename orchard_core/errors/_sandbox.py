"""What fails about sandboxes."""

from __future__ import annotations

from orchard_core.errors._root import OrchardError


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


class CreateTimedOut(SandboxCreateFailed):
    """The sandbox was not ready within the time that its creation was given."""


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


class NotAnAgent(SandboxConnectionLost):
    """What answers at the sandbox's address says what no agent says: it was replaced or is broken. Asking it
    again is of no use."""


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
