"""How the agent's run ended, from what the harness reported and what the gateway and sandbox know."""

from __future__ import annotations

import time

from orchard_core.errors import BudgetExceeded, ModelError, OrchardError, SandboxError, SandboxGone
from orchard_core.rollout.fault import Fault, describe
from orchard_core.sandbox.contract import Sandbox, SandboxProvider
from orchard_core.types.harness import HarnessResult, StopReason
from orchard_core.types.rollout import Attribution, ErrorInfo, Outcome, Phase

_BY_STOP = {
    StopReason.SUBMITTED: (Outcome.COMPLETED, Attribution.AGENT),
    StopReason.ANSWERED: (Outcome.COMPLETED, Attribution.AGENT),
    StopReason.MALFORMED: (Outcome.COMPLETED, Attribution.AGENT),
    StopReason.TURN_LIMIT: (Outcome.TRUNCATED, Attribution.AGENT),
    StopReason.BUDGET: (Outcome.TRUNCATED, Attribution.AGENT),
    StopReason.CONTEXT_LIMIT: (Outcome.TRUNCATED, Attribution.AGENT),
    StopReason.MODEL_ERROR: (Outcome.MODEL_FAILED, Attribution.MODEL),
    StopReason.ERROR: (Outcome.HARNESS_FAILED, Attribution.HARNESS),
}


def name_stop(
    result: HarnessResult, exhausted: BudgetExceeded | None, last: ModelError | None, *, elapsed_s: float
) -> Fault | None:
    """What a returned result means, given the session's budget and the error of its newest call; None when
    the agent simply finished."""
    if exhausted is not None and result.stop is not StopReason.SUBMITTED:
        return name_exhausted(exhausted, elapsed_s=elapsed_s)
    if last is not None and result.stop in {StopReason.ANSWERED, StopReason.MODEL_ERROR, StopReason.ERROR}:
        # A program that prints the error and ends looks like one that answered.
        return name_model(last, elapsed_s=elapsed_s)
    outcome, attribution = _BY_STOP[result.stop]
    if outcome is Outcome.COMPLETED:
        return None
    message = result.message or f"the harness stopped: {result.stop}"
    info = ErrorInfo(kind=str(result.stop), phase=Phase.AGENT, message=message, elapsed_s=elapsed_s)
    return Fault(outcome=outcome, attribution=attribution, error=info)


def name_exhausted(error: BudgetExceeded, *, elapsed_s: float) -> Fault:
    """A budget of the session ran out."""
    outcome = Outcome.TIMED_OUT if error.kind == "wall_clock" else Outcome.TRUNCATED
    return Fault(
        outcome=outcome,
        attribution=Attribution.AGENT,
        error=describe(error, Phase.AGENT, elapsed_s=elapsed_s),
    )


def name_model(error: ModelError, *, elapsed_s: float) -> Fault:
    """The model could not be had."""
    info = describe(error, Phase.AGENT, elapsed_s=elapsed_s)
    return Fault(outcome=Outcome.MODEL_FAILED, attribution=Attribution.MODEL, error=info)


async def name_death(
    sandbox: Sandbox, provider: SandboxProvider, *, created_at: float, answers: int, elapsed_s: float
) -> Fault:
    """Who ended a sandbox that no longer answers after the agent's run.

    The provider's own word counts first. Without it: it was infrastructure when the sandbox had outlived
    its TTL, when the model never acted, or when the provider cannot make another sandbox now; else the
    place was healthy, something that acts lived in the sandbox, and so it was the agent.
    """
    gone = await _last_words(sandbox)
    by, why = gone.by if isinstance(gone, SandboxGone) else "", "its provider says so"
    if not by:
        by, why = await _deduce(sandbox, provider, created_at=created_at, answers=answers)
    attribution = Attribution.AGENT if by == "agent" else Attribution.INFRASTRUCTURE
    who = "by what the agent did" if by == "agent" else "by no doing of the agent's"
    told = describe(gone, Phase.AGENT, elapsed_s=elapsed_s)
    message = f"sandbox {sandbox.id} ended during the agent's run, {who} ({why}): {told.message}"
    error = told.model_copy(update={"kind": "SandboxGone", "message": message})
    return Fault(outcome=Outcome.SANDBOX_FAILED, attribution=attribution, error=error)


async def _last_words(sandbox: Sandbox) -> OrchardError:
    try:
        await sandbox.exec(["true"], timeout=5)
    except SandboxError as error:
        return error
    return SandboxGone("it stopped answering for a while")


async def _deduce(
    sandbox: Sandbox, provider: SandboxProvider, *, created_at: float, answers: int
) -> tuple[str, str]:
    if time.time() - created_at >= sandbox.spec.ttl_s:
        return "infrastructure", f"it had outlived its TTL of {sandbox.spec.ttl_s:g} s"
    if answers == 0:
        return "infrastructure", "the model had not acted yet"
    try:
        async with await provider.create(sandbox.spec) as probe:
            healthy = await probe.alive()
    except (SandboxError, OSError) as error:
        return "infrastructure", f"the provider cannot make another one either: {error}"
    if not healthy:
        return "infrastructure", "a new one does not answer either"
    return "agent", "the provider is healthy, and nothing but the agent acted in it"
