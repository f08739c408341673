"""The agent's error codes as Orchard's errors. The code decides, never the message."""

from __future__ import annotations

import json
from collections.abc import Mapping

from orchard_core import errors
from orchard_core.errors import (
    AgentRefused,
    ArchiveEscape,
    CommandNotFound,
    CwdMissing,
    DiskFull,
    ExecError,
    ExecForgotten,
    ExecIdTaken,
    FileDenied,
    FileError,
    FileExists,
    FileMissing,
    IsADirectory,
    NoShell,
    NotADirectory,
    NotAnAgent,
    PortRefused,
    RangeRefused,
    SandboxConnectionLost,
    SandboxError,
    SandboxGone,
    SandboxUnsupported,
    ServiceOverloaded,
    StdinClosed,
    UserUnknown,
)

_ERRORS: dict[str, type[SandboxError]] = {
    "unauthorized": AgentRefused,
    "wrong_sandbox": AgentRefused,
    "forbidden": AgentRefused,
    "shutting_down": SandboxGone,
    "cwd_missing": CwdMissing,
    "command_not_found": CommandNotFound,
    "not_executable": CommandNotFound,
    "no_shell": NoShell,
    "user_unknown": UserUnknown,
    "user_not_permitted": UserUnknown,
    "run_forgotten": ExecForgotten,
    "run_unknown": ExecError,
    "id_conflict": ExecIdTaken,
    "argument_too_long": ExecError,
    "nul_byte": ExecError,
    "spawn_failed": ExecError,
    "stdin_closed": StdinClosed,
    "stdin_gap": ExecError,
    "no_terminal": ExecError,
    "terminal_unavailable": SandboxUnsupported,
    "lane_full": ServiceOverloaded,
    "path_not_found": FileMissing,
    "path_exists": FileExists,
    "directory_not_empty": FileExists,
    "permission_denied": FileDenied,
    "read_only": FileDenied,
    "not_a_directory": NotADirectory,
    "is_a_directory": IsADirectory,
    "archive_escape": ArchiveEscape,
    "no_space": DiskFull,
    "not_a_file": FileError,
    "archive_invalid": FileError,
    "name_too_long": FileError,
    "too_many_links": FileError,
    "cross_device": FileError,
    "bad_range": RangeRefused,
    "port_refused": PortRefused,
}

_BY_STATUS: dict[int, type[SandboxError]] = {
    401: AgentRefused,
    403: AgentRefused,
    410: SandboxGone,
    429: ServiceOverloaded,
    502: SandboxConnectionLost,
    503: ServiceOverloaded,
    504: SandboxConnectionLost,
}
"""What a service, or a proxy before it, means that says no more."""

REFUSAL_MAX = 64 << 10
"""Bytes of a refusal that are read."""
_MESSAGE_MAX = 8 << 10
_BAD = 400

_HINTS: dict[type[SandboxError], str] = {
    ExecIdTaken: "make a new id for every command; sending one again is for the same command",
    CwdMissing: "make it first, or leave `cwd` out: commands then begin in the sandbox's own directory",
    CommandNotFound: "name a program of the sandbox's image by its whole path, or put it there first",
    NoShell: "the image has no shell: give the command as a list, program first",
    UserUnknown: "name a user of the image's /etc/passwd, or a number",
    FileMissing: "a relative path begins in the sandbox's working directory; list that to see what is there",
    FileDenied: "write where the sandbox's user may, such as its working directory or /tmp",
}
"""What to do next, where the agent does not say."""

_UNKNOWN = "SandboxUnknown"
"""What a service says of a sandbox that it does not have."""


def agent_error(
    status: int, body: bytes, headers: Mapping[str, str] | None = None, *, of_service: bool = False
) -> SandboxError:
    """The error that an answer with this status, body and (lower-case) headers stands for: an agent's, or
    that of a service before it, which names the class. An agent does not: what becomes of its sandbox is not
    its to say."""
    kind: type[SandboxError] | None = None
    try:
        said = json.loads(body[:REFUSAL_MAX])
        message = str(said["message"])[:_MESSAGE_MAX]
        kind = _ERRORS.get(str(said.get("code", "")))
        if kind is None and of_service:
            kind = _named(str(said.get("error", "")))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        said = {}
        message = f"what answers for the agent says {status}: {body[:200].decode('utf-8', 'replace')}"
    if status < _BAD and not of_service:
        kind = NotAnAgent  # no agent leads elsewhere
    kind = kind or _BY_STATUS.get(status, SandboxError)
    hint = str(said.get("hint") or _HINTS.get(kind, ""))[:_MESSAGE_MAX]
    if issubclass(kind, ServiceOverloaded):
        return kind(message, retry_after_s=_retry_after(headers or {}), hint=hint)
    return kind(message, hint=hint)


def _named(name: str) -> type[SandboxError] | None:
    kind = SandboxGone if name == _UNKNOWN else getattr(errors, name, None)
    return kind if isinstance(kind, type) and issubclass(kind, SandboxError) else None


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds; the date form is taken for unknown, since clocks differ."""
    try:
        return max(0.0, float(headers.get("retry-after", "")))
    except ValueError:
        return None
