"""Entries and runs as `/v2` tells them."""

from __future__ import annotations

import base64

from orchard_core import ExecResult, OrchardError, RunTold, SandboxSpec
from orchard_env.service.entry import Entry, Status
from orchard_env.service.spec_rules import OWN_LABELS
from orchard_env.types.v2 import Problem, SandboxView
from orchard_env.types.v2_exec import Encoding, ExecView, OutputView


def sandbox_view(entry: Entry) -> SandboxView:
    """How a sandbox stands, for its owner."""
    fault = entry.fault
    return SandboxView(
        id=entry.id,
        status=entry.status.value,
        spec=shown_spec(entry.spec),
        workdir=entry.workdir,
        created=entry.created,
        problem=problem_view(fault) if entry.status is Status.FAILED and fault is not None else None,
    )


def shown_spec(spec: SandboxSpec) -> SandboxSpec:
    """Without the content of files, which may be large, and without the service's own labels."""
    files = tuple(file.model_copy(update={"content": b""}) for file in spec.files)
    labels = {name: value for name, value in spec.labels.items() if not name.startswith(OWN_LABELS)}
    return spec.model_copy(update={"files": files, "labels": labels})


def problem_view(error: OrchardError) -> Problem:
    """Why a sandbox failed."""
    return Problem(error=type(error).__name__, message=error.message, hint=error.hint)


def exec_view(sandbox_id: str, run: RunTold, *, encoding: Encoding, output: bool = True) -> ExecView:
    """How a command stands; with `output`, what it said, once it has ended."""
    ended = run.result
    return ExecView(
        id=run.id,
        sandbox_id=sandbox_id,
        state=run.state,
        created=run.created,
        started=run.started,
        ended=run.ended,
        exit_code=None if ended is None else ended.exit_code,
        timed_out=ended is not None and ended.timed_out,
        timeout_s=None if ended is None else ended.limit_s,
        duration_s=None if ended is None else ended.duration_s,
        encoding=encoding,
        stdout=_stdout(ended, encoding) if output and ended is not None else None,
        stderr=_stderr(ended, encoding) if output and ended is not None else None,
        failure=run.failure,
    )


def _stdout(ended: ExecResult, encoding: Encoding) -> OutputView:
    return OutputView(
        data=written(ended.stdout, encoding), size=ended.stdout_size, truncated=ended.stdout_truncated
    )


def _stderr(ended: ExecResult, encoding: Encoding) -> OutputView:
    return OutputView(
        data=written(ended.stderr, encoding), size=ended.stderr_size, truncated=ended.stderr_truncated
    )


def written(data: bytes, encoding: Encoding) -> str:
    """Bytes as they stand in JSON."""
    if encoding == "base64":
        return base64.b64encode(data).decode()
    return data.decode("utf-8", "replace")
