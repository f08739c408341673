"""What has been seen of a rollout so far, and the record it makes."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from orchard_core import __version__
from orchard_core.rollout.fault import Fault
from orchard_core.rollout.fitting import FittedSpec
from orchard_core.rollout.identity import digest
from orchard_core.rollout.parts import RolloutParts
from orchard_core.rollout.text import ERROR_LIMIT, excerpt
from orchard_core.types.harness import HarnessResult
from orchard_core.types.rollout import Artifact, Attribution, Outcome, PhaseTiming, Provenance, Rollout
from orchard_core.types.task import Task
from orchard_core.types.trajectory import Trajectory


@dataclass(slots=True, kw_only=True)
class Progress:
    """Grows while the rollout runs; a record can be made of it at any time."""

    started_at: float
    """Seconds since the epoch."""
    agent_ran: bool = False
    """The agent phase began."""
    fault: Fault | None = None
    """What decided the outcome, when something failed or a limit fired."""
    result: HarnessResult | None = None
    """What the harness reported."""
    trajectory: Trajectory = field(default_factory=Trajectory)
    """Every model call."""
    artifacts: tuple[Artifact, ...] = ()
    """What was collected."""
    timings: list[PhaseTiming] = field(default_factory=list)
    """How long each phase took."""

    def record(
        self,
        task: Task,
        parts: RolloutParts,
        fitted: FittedSpec,
        *,
        id: str,  # noqa: A002 - the record's field
        attempt: int,
        tries: int,
        seed: int,
    ) -> Rollout:
        """The rollout as far as it has come, not yet verified."""
        fault = self.fault
        ended = fault.outcome if fault else Outcome.COMPLETED
        return Rollout(
            id=id,
            task=task,
            attempt=attempt,
            tries=tries,
            seed=seed,
            harness=parts.harness.name,
            model=parts.model_text,
            limits=parts.limits,
            outcome=ended,
            attribution=fault.attribution if fault else Attribution.AGENT,
            agent_outcome=ended if self.agent_ran else None,
            error=fault.error if fault else None,
            result=_without_files(self.result),
            trajectory=self.trajectory,
            usage=self.trajectory.usage,
            cost_usd=self.trajectory.cost_usd,
            artifacts=self.artifacts,
            timings=tuple(self.timings),
            started_at=self.started_at,
            finished_at=time.time(),
            provenance=self._provenance(parts, fitted),
        )

    def _provenance(self, parts: RolloutParts, fitted: FittedSpec) -> Provenance:
        first = self.trajectory.calls[0] if self.trajectory.calls else None
        return Provenance(
            orchard=__version__,
            harness=f"{parts.harness.name} {parts.harness.version}",
            model=parts.model_text,
            provider=parts.provider.name,
            image=str(fitted.spec.image),
            image_fallback=fitted.fallback,
            prompt_digest=digest(*first.messages.added, first.tools or "")[:16] if first else "",
            config_digest=parts.config_digest,
            plugins=parts.versions,
        )


def _without_files(result: HarnessResult | None) -> HarnessResult | None:
    """Its files lie among the artifacts."""
    if result is None:
        return None
    return result.model_copy(update={"artifacts": {}, "message": excerpt(result.message, ERROR_LIMIT)})
