"""The agent's error codes as Orchard's errors. The code decides, never the message."""

from __future__ import annotations

import json

from orchard_core.errors import (
    AgentRefused,
    ArchiveEscape,
    CommandNotFound,
    CwdMissing,
    DiskFull,
    ExecError,
    ExecForgotten,
    FileDenied,
    FileError,
    FileExists,
    FileMissing,
    IsADirectory,
    NoShell,
    NotADirectory,
    PortRefused,
    RangeRefused,
    SandboxError,
    SandboxGone,
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
    "id_conflict": ExecError,
    "argument_too_long": ExecError,
    "nul_byte": ExecError,
    "spawn_failed": ExecError,
    "stdin_closed": StdinClosed,
    "stdin_gap": ExecError,
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


def agent_error(status: int, body: bytes) -> SandboxError:
    """The error that an answer with this status and body stands for."""
    try:
        said = json.loads(body)
        return _ERRORS.get(str(said["code"]), SandboxError)(str(said["message"]))
    except (ValueError, KeyError, TypeError):
        return SandboxError(f"the agent answered {status}: {body[:200].decode('utf-8', 'replace')}")
