"""Whose doing a failure was: the one border where every exception of a rollout gets its name.

| raised in | error                                   | outcome         | attributed to  |
|-----------|-----------------------------------------|-----------------|----------------|
| create    | SandboxUnsupported                      | task_invalid    | task           |
| create    | anything else                           | sandbox_failed  | infrastructure |
| prepare   | ExecError, FileError, SandboxUnsupported | task_invalid   | task           |
| prepare   | SandboxError, a full or broken machine  | sandbox_failed  | infrastructure |
| prepare   | deadline, anything else                 | task_invalid    | task           |
| agent     | its own deadline                        | timed_out       | agent          |
| agent     | BudgetExceeded                          | truncated       | agent          |
| agent     | BudgetExceeded of the wall clock        | timed_out       | agent          |
| agent     | ModelError                              | model_failed    | model          |
| agent     | SandboxError                            | sandbox_failed  | infrastructure |
| agent     | ExecError, FileError, SandboxUnsupported | harness_failed | harness        |
| agent     | HarnessHomeLost                         | harness_failed  | agent          |
| agent     | TaskError, raised by a task's tool      | task_invalid    | task           |
| agent     | HarnessError, anything else             | harness_failed  | harness        |
| collect   | FileError, an artifact past its cap     | verifier_failed | agent          |
| collect   | deadline, SandboxError, anything else   | sandbox_failed  | infrastructure |
| verify    | SandboxError, deadline of its sandbox   | verifier_failed | infrastructure |
| verify    | ModelError (a judge's)                  | verifier_failed | model          |
| verify    | RewardError, deadline, anything else    | verifier_failed | task           |

A sandbox that is dead after the agent's run is looked into by `ending.name_death`.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass

from orchard_core.errors import (
    BlobTooLarge,
    BudgetExceeded,
    DeadlineExceeded,
    ExecError,
    FileError,
    HarnessHomeLost,
    ModelError,
    ModelRejected,
    OrchardError,
    SandboxError,
    SandboxUnsupported,
    TaskError,
)
from orchard_core.rollout.text import ERROR_LIMIT, excerpt
from orchard_core.types.rollout import Attribution, ErrorInfo, Outcome, Phase

_MACHINE = frozenset({errno.ENOSPC, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO, errno.EDQUOT})


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A failure with its name."""

    outcome: Outcome
    """How the rollout ended."""
    attribution: Attribution
    """Whose doing that is."""
    error: ErrorInfo
    """What was raised."""


def name_fault(error: BaseException, phase: Phase, *, elapsed_s: float) -> Fault:
    """Apply the table above; of a group of exceptions, to the first that is one of ours, or the first."""
    error = _leaf(error)
    outcome, attribution = _RULES[phase](error)
    return Fault(outcome=outcome, attribution=attribution, error=describe(error, phase, elapsed_s=elapsed_s))


def describe(error: BaseException, phase: Phase, *, elapsed_s: float) -> ErrorInfo:
    """The error as it is stored: its own class, message, limit and elapsed time."""
    text = _text(error)
    message = text if isinstance(error, OrchardError) else f"{type(error).__name__}: {text}"
    limit = getattr(error, "limit_s", None)
    own = getattr(error, "elapsed_s", None)
    if limit is None and isinstance(error, BudgetExceeded) and error.kind == "wall_clock":
        limit, own = error.limit, error.used
    return ErrorInfo(
        kind=type(error).__name__,
        phase=phase,
        message=excerpt(message, ERROR_LIMIT),
        status=error.status if isinstance(error, ModelRejected) else None,
        limit_s=limit,
        elapsed_s=elapsed_s if own is None else own,
    )


def _leaf(error: BaseException) -> BaseException:
    if not isinstance(error, BaseExceptionGroup):
        return error
    leaves = [_leaf(inner) for inner in error.exceptions]
    return next((leaf for leaf in leaves if isinstance(leaf, OrchardError)), leaves[0])


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - border: a foreign exception may not even be printable
        return "(its message cannot be printed)"


def _create(error: BaseException) -> tuple[Outcome, Attribution]:
    if isinstance(error, SandboxUnsupported):  # this task asks for what nobody here can give; others may not
        return Outcome.TASK_INVALID, Attribution.TASK
    return Outcome.SANDBOX_FAILED, Attribution.INFRASTRUCTURE


def _prepare(error: BaseException) -> tuple[Outcome, Attribution]:
    tasks_own = isinstance(error, (ExecError, FileError, SandboxUnsupported))
    if (isinstance(error, SandboxError) and not tasks_own) or _is_machine(error):
        return Outcome.SANDBOX_FAILED, Attribution.INFRASTRUCTURE
    return Outcome.TASK_INVALID, Attribution.TASK


def _agent(error: BaseException) -> tuple[Outcome, Attribution]:
    match error:
        case DeadlineExceeded() | BudgetExceeded(kind="wall_clock"):
            return Outcome.TIMED_OUT, Attribution.AGENT
        case BudgetExceeded():
            return Outcome.TRUNCATED, Attribution.AGENT
        case ModelError():
            return Outcome.MODEL_FAILED, Attribution.MODEL
        case TaskError():
            return Outcome.TASK_INVALID, Attribution.TASK
        case ExecError() | FileError() | SandboxUnsupported():
            # The sandbox works; the harness should have told the model instead of giving up.
            return Outcome.HARNESS_FAILED, Attribution.HARNESS
        case HarnessHomeLost():
            return Outcome.HARNESS_FAILED, Attribution.AGENT
        case SandboxError():
            return Outcome.SANDBOX_FAILED, Attribution.INFRASTRUCTURE
    by = Attribution.INFRASTRUCTURE if _is_machine(error) else Attribution.HARNESS
    return Outcome.HARNESS_FAILED, by


def _collect(error: BaseException) -> tuple[Outcome, Attribution]:
    if isinstance(error, (BlobTooLarge, FileError)):  # the files are as the agent left them
        return Outcome.VERIFIER_FAILED, Attribution.AGENT
    return Outcome.SANDBOX_FAILED, Attribution.INFRASTRUCTURE


def _verify(error: BaseException) -> tuple[Outcome, Attribution]:
    if isinstance(error, SandboxError) or _is_machine(error):
        return Outcome.VERIFIER_FAILED, Attribution.INFRASTRUCTURE
    if isinstance(error, ModelError):
        return Outcome.VERIFIER_FAILED, Attribution.MODEL
    return Outcome.VERIFIER_FAILED, Attribution.TASK


def _is_machine(error: BaseException) -> bool:
    return isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno in _MACHINE)


_RULES = {
    Phase.CREATE: _create,
    Phase.PREPARE: _prepare,
    Phase.AGENT: _agent,
    Phase.COLLECT: _collect,
    Phase.VERIFY: _verify,
    Phase.RECORD: _create,
    Phase.CLOSE: _create,
}
