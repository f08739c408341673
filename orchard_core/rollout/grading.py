"""Judging what an agent left: at the end of a rollout, and again later."""

from __future__ import annotations

import math
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from orchard_core.errors import (
    ConfigError,
    DeadlineExceeded,
    RegradeRefused,
    RewardError,
    RewardMissing,
    SandboxCreateFailed,
)
from orchard_core.gateway.contract import SessionContext
from orchard_core.reward.contract import Evidence, Reward
from orchard_core.rollout.deadline import deadline, within
from orchard_core.rollout.fault import Fault, name_fault
from orchard_core.rollout.fitting import fit_spec
from orchard_core.rollout.parts import RolloutParts
from orchard_core.rollout.text import ERROR_LIMIT, LOG_LIMIT, excerpt
from orchard_core.sandbox.contract import Sandbox
from orchard_core.types.model import ModelEndpoint
from orchard_core.types.reward import RewardResult
from orchard_core.types.rollout import Artifact, Attribution, Outcome, Phase, Rollout
from orchard_core.types.sandbox import SandboxSpec
from orchard_core.types.task import VerifyIn

VERIFIED = frozenset({Outcome.COMPLETED, Outcome.TRUNCATED, Outcome.TIMED_OUT})
"""Ends of the agent's run after which its work is judged."""


class RolloutGrading:
    """What a reward may use; sandboxes and judge sessions end with it."""

    def __init__(
        self, rollout: Rollout, parts: RolloutParts, *, own: Sandbox | None, deadline_s: float
    ) -> None:
        self._rollout = rollout
        self._parts = parts
        self._own = own
        self._end = time.monotonic() + deadline_s
        self.judged: list[Artifact] = []
        """Recordings of judge sessions, kept as blobs."""

    @property
    def own(self) -> Sandbox | None:
        """The agent's own sandbox, or None."""
        return self._own

    @property
    def deadline_s(self) -> float:
        """Seconds left for judging."""
        return max(0.0, self._end - time.monotonic())

    @asynccontextmanager
    async def fresh(self, spec: SandboxSpec) -> AsyncIterator[Sandbox]:
        """A clean sandbox, closed on exit."""
        parts = self._parts
        can = await parts.provider.capabilities()
        fitted = fit_spec(self._rollout.task, spec, can, parts.settings).spec
        labels = {**fitted.labels, "orchard.rollout": self._rollout.id, "orchard.role": "verifier"}
        fitted = fitted.model_copy(update={"labels": labels})
        try:
            async with deadline("creating the verifier's sandbox", parts.settings.phases.create_s):
                sandbox = await parts.provider.create(fitted)
        except DeadlineExceeded as error:
            raise SandboxCreateFailed(error.message) from error
        async with sandbox:
            yield sandbox

    @asynccontextmanager
    async def judge(self, name: str) -> AsyncIterator[ModelEndpoint]:
        """A judge in a session of its own; its recording is kept beside the artifacts."""
        parts = self._parts
        context = SessionContext(rollout=f"{self._rollout.id}-judge", seed=self._rollout.seed)
        session = await parts.gateway.open_session(parts.judge(name), context)
        try:
            yield session.endpoint
        finally:
            recording = (await session.close()).model_dump_json().encode()
            blob = await parts.blobs.write(_once(recording), limit=parts.settings.max_artifact_bytes)
            path = f"judge:{name}-{len(self.judged)}"
            self.judged.append(Artifact(path=path, kind="file", sha256=blob.sha256, size=blob.size))


async def regrade(rollout: Rollout, parts: RolloutParts) -> Rollout:
    """Judge a stored rollout again, from its artifacts, without running the agent.

    Raises RegradeRefused when that cannot be.
    """
    try:
        reward = parts.taskset.reward(rollout.task)
    except Exception:  # noqa: BLE001 - border: a task set may raise anything; `grade` names it
        return await grade(rollout, parts)
    if _wants_own(reward, rollout):
        raise RegradeRefused(
            f"rollout {rollout.id} was judged in the agent's own sandbox, which is gone", hint="run it again"
        )
    if not rollout.task.artifacts:
        raise RegradeRefused(
            f"rollout {rollout.id}: task {rollout.task.id} declares no artifacts", hint="run it again"
        )
    if rollout.agent_outcome not in VERIFIED:
        raise RegradeRefused(
            f"rollout {rollout.id} ended as {rollout.outcome}: there is nothing to judge", hint="run it again"
        )
    return await grade(rollout, parts)


async def grade(rollout: Rollout, parts: RolloutParts, *, own: Sandbox | None = None) -> Rollout:
    """The rollout with its reward, or with outcome verifier_failed and a score of None.

    `own` is the agent's sandbox as it was left; its processes are killed before anything is judged.
    Infrastructure faults are tried again up to `verify_tries` times, unless judged in `own`.
    """
    began = time.monotonic()
    try:
        reward = parts.taskset.reward(rollout.task)
    except Exception as error:  # noqa: BLE001 - border: a task set may raise anything about one broken task
        fault = name_fault(error, Phase.VERIFY, elapsed_s=time.monotonic() - began)
        return _failed(rollout, fault, "", [])
    tries = 1 if _wants_own(reward, rollout) else parts.settings.verify_tries
    graded = rollout
    for _ in range(max(1, tries)):
        graded = await _grade_once(rollout, parts, reward, own)
        if graded.attribution is not Attribution.INFRASTRUCTURE:
            break
    return graded


async def _grade_once(rollout: Rollout, parts: RolloutParts, reward: Reward, own: Sandbox | None) -> Rollout:
    phases = parts.settings.phases
    limit = rollout.task.verifier_timeout_s + phases.verify_extra_s
    began = time.monotonic()
    judged: list[Artifact] = []
    version = f"{reward.name} {reward.version}"
    try:
        work = _score(rollout, parts, reward, own, limit, judged)
        result = await within("verify", limit, work, grace_s=phases.cancel_s)
    except ConfigError:
        raise  # the user's to mend, and the same for every rollout
    except Exception as error:  # noqa: BLE001 - border: a reward may raise anything; fault.py names it
        fault = name_fault(error, Phase.VERIFY, elapsed_s=time.monotonic() - began)
        return _failed(rollout, fault, version, judged)
    # Error and outcome of an earlier grading give way to those of the agent's run.
    ended = rollout.agent_outcome or rollout.outcome
    earlier = rollout.error if rollout.error and rollout.error.phase is not Phase.VERIFY else None
    return rollout.model_copy(
        update={
            "reward": _tidy(result, version),
            "outcome": ended,
            "attribution": Attribution.AGENT,
            "error": earlier,
            "artifacts": _with(rollout, judged),
        }
    )


async def _score(
    rollout: Rollout,
    parts: RolloutParts,
    reward: Reward,
    own: Sandbox | None,
    limit: float,
    judged: list[Artifact],
) -> RewardResult:
    used = own if _wants_own(reward, rollout) else None
    if used is not None:
        await used.reset_processes()
    grading = RolloutGrading(rollout, parts, own=used, deadline_s=limit)
    evidence = Evidence(
        task=rollout.task,
        trajectory=rollout.trajectory,
        outcome=rollout.agent_outcome or rollout.outcome,
        result=rollout.result,
        artifacts={item.path: item for item in rollout.artifacts},
        blobs=parts.blobs,
    )
    try:
        result = await reward.score(evidence, grading)
    finally:
        judged += grading.judged
    if not isinstance(result, RewardResult):
        raise RewardError(
            f"reward {reward.name} gave a {type(result).__name__}", hint="it must be a RewardResult"
        )
    if result.score is None or not math.isfinite(result.score):
        raise RewardMissing(f"reward {reward.name} gave no score: {result.reason or result.score}")
    return result.model_copy(update={"same_sandbox": True}) if used is not None else result


def _wants_own(reward: Reward, rollout: Rollout) -> bool:
    return reward.needs_own_sandbox or rollout.task.verify_in is VerifyIn.SAME_SANDBOX


def _failed(rollout: Rollout, fault: Fault, version: str, judged: list[Artifact]) -> Rollout:
    none = RewardResult(score=None, reason=fault.error.message, version=version)
    return rollout.model_copy(
        update={
            "reward": none,
            "outcome": fault.outcome,
            "attribution": fault.attribution,
            "error": fault.error,
            "artifacts": _with(rollout, judged),
        }
    )


def _tidy(result: RewardResult, version: str) -> RewardResult:
    return result.model_copy(
        update={
            "reason": excerpt(result.reason, ERROR_LIMIT),
            "log": excerpt(result.log, LOG_LIMIT),
            "version": result.version or version,
        }
    )


def _with(rollout: Rollout, judged: list[Artifact]) -> tuple[Artifact, ...]:
    return tuple(item for item in rollout.artifacts if not item.path.startswith("judge:")) + tuple(judged)


async def _once(data: bytes) -> AsyncIterator[bytes]:
    yield data
