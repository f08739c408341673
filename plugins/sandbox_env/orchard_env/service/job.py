"""One job as v1 tells it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from orchard_core import ExecResult, RunTold

TIMED_OUT = 124
"""The exit code of v1 for a time-out; the `error` beside it tells it from a command that exits so itself."""

_BARE = 1024
"""Bytes of a job's objects without its texts, and of what finds it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A run of a sandbox's agent, and what the service knows beside it."""

    id: str
    """Sandbox and run: `SANDBOX.RUN`."""
    sandbox_id: str
    """Where it runs."""
    tenant: str
    """Whose it is."""
    command: str | Sequence[str] | None
    """As the client wrote it; None when it was too long for the sandbox to keep."""
    told: RunTold
    """How it stands, by its agent."""

    @property
    def status(self) -> str:
        """`queued`, `running`, `succeeded` or `failed`."""
        result = self.told.result
        if result is None:
            return "failed" if self.told.state == "failed" else self.told.state
        return "succeeded" if result.exit_code == 0 and not result.timed_out else "failed"

    @property
    def weight(self) -> int:
        """Bytes that remembering it costs, about."""
        told, result = self.told, self.told.result
        command = (self.command,) if isinstance(self.command, str | None) else self.command
        outputs = (result.stdout, result.stderr) if result else ()
        parts = (self.id, told.id, told.note, told.failure, *command, *outputs)
        return _BARE + sum(map(sys.getsizeof, parts))

    def body(self) -> dict[str, object]:
        """The answer of v1. Built by hand: it is the hot path."""
        told, result = self.told, self.told.result
        answer: dict[str, object] = {
            "job_id": self.id,
            "sandbox_id": self.sandbox_id,
            "command": self.command if isinstance(self.command, str | None) else list(self.command),
            "status": self.status,
            "stdout": "",
            "stderr": "",
            "exit_code": None,
            "created_at": told.created,
            "started_at": told.started,
            "completed_at": told.ended,
            "error": told.failure,
        }
        return answer if result is None else answer | _ended(result)


def _ended(result: ExecResult) -> dict[str, object]:
    late = f"the command timed out after {result.limit_s:g} s" if result.timed_out else None
    return {
        "stdout": result.stdout_text,
        "stderr": result.stderr_text,
        "exit_code": TIMED_OUT if result.timed_out else result.exit_code,
        "error": late,
        "timed_out": result.timed_out,
        "duration": result.duration_s,
        "stdout_size": result.stdout_size,
        "stderr_size": result.stderr_size,
        "stdout_truncated": result.stdout_truncated,
        "stderr_truncated": result.stderr_truncated,
    }
