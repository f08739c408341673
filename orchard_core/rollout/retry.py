"""What is started again after it failed, how often, and after what pause."""

from __future__ import annotations

import random

from orchard_core.types.base import Record
from orchard_core.types.rollout import Attribution, ErrorInfo, Outcome, Rollout
from orchard_core.types.task import VerifyIn


class RetryPolicy(Record):
    """Retries by whose doing a failure was. The agent's own doing is never repeated."""

    infrastructure: int = 2
    """Further tries after a failure of the sandbox, the machine or the network."""
    model: int = 1
    """Further tries after the model could not be had (each call was retried by the gateway before)."""
    harness: int = 0
    """Further tries after the harness broke."""
    alike: int = 5
    """A run ends when so many rollouts in a row failed alike before the model answered at all; 0: never."""
    total: int = 12
    """Tries in all, over every resume of the run."""
    gradings: int = 4
    """Times one try is graded in all, over every resume of the run, when its verifier failed by no doing of
    the agent's; 1: a resumed run does not grade it again."""
    backoff_s: float = 1.0
    """Pause before the first retry, seconds; it doubles each time, with jitter."""
    backoff_cap_s: float = 60.0
    """The longest pause, seconds."""

    def allows(self, rollout: Rollout, *, tries: int) -> bool:
        """Whether a rollout that has been tried `tries` times within this session is started again. A request
        that the model server refused would be refused again."""
        if is_refused(rollout.error):
            return False
        further = self._further(rollout.outcome, rollout.attribution, regradable=is_regradable(rollout))
        return 0 < tries <= further

    def resumes(self, outcome: Outcome, attribution: Attribution, *, regradable: bool, tries: int) -> bool:
        """Whether a resumed run starts a finished rollout again that was tried `tries` times in all. A model
        that refused may take the request by then: the key was mended."""
        return tries < self.total and self._further(outcome, attribution, regradable=regradable) > 0

    def grades_again(
        self, outcome: Outcome, attribution: Attribution, *, regradable: bool, gradings: int
    ) -> bool:
        """Whether a resumed run grades a finished rollout again that was graded `gradings` times in all."""
        failed = outcome is Outcome.VERIFIER_FAILED and attribution is not Attribution.AGENT
        return failed and regradable and gradings < self.gradings

    def pause_s(self, tries: int, *, seed: int) -> float:
        """Seconds to wait after the failed try number `tries`: between half and all of the doubled pause."""
        full = min(self.backoff_cap_s, self.backoff_s * 2.0 ** (tries - 1))
        return full * random.Random(f"{seed}:{tries}").uniform(0.5, 1.0)  # noqa: S311 - jitter, no secret

    def _further(self, outcome: Outcome, attribution: Attribution, *, regradable: bool) -> int:
        if outcome is Outcome.VERIFIER_FAILED and regradable:
            return 0  # the work is done; grade it again instead of running the agent again
        if outcome in {Outcome.CANCELLED, Outcome.TASK_INVALID}:
            return 0
        return {
            Attribution.INFRASTRUCTURE: self.infrastructure,
            Attribution.MODEL: self.model,
            Attribution.HARNESS: self.harness,
        }.get(attribution, 0)


def is_refused(error: ErrorInfo | None) -> bool:
    """The model server refused the request itself (4xx)."""
    return error is not None and error.kind == "ModelRejected"


def is_regradable(rollout: Rollout) -> bool:
    """Its verifier failed, and what it is judged on was kept; a harness's own files are not that."""
    kept = any(item.path in rollout.task.artifacts for item in rollout.artifacts)
    judged_apart = rollout.task.verify_in is VerifyIn.FRESH
    return rollout.outcome is Outcome.VERIFIER_FAILED and judged_apart and kept
