"""Noticing that no rollout of a run can succeed: a wrong key, a model that is not there, a program that is
missing. Such a run ends after a few rollouts instead of trying all of them."""

from __future__ import annotations

import re
from pathlib import Path

from orchard_core.errors import RunFutile
from orchard_core.rollout.retry import is_refused
from orchard_core.types.rollout import Outcome, Rollout

_ALWAYS = frozenset({401, 402, 403, 404, 429})
"""Statuses that are the account's or the model's, whatever the request was; 429: the quota is used up."""
_THESE_TOO = " (these too with `retry: {harness: 1}` in a recipe, or --retry-failed harness of a matrix)"
_VARYING = re.compile(r"[0-9a-f]*\d[0-9a-f]*", re.IGNORECASE)
"""Ids, ports and process numbers, which make texts of one failure differ."""


class Futility:
    """Counts rollouts in a row that failed alike before the model answered at all."""

    def __init__(self, most: int, *, run: Path) -> None:
        """`most` 0 never gives up."""
        self._most = most
        self._run = run
        self._failure = ""
        self._seen = 0

    def check(self, rollout: Rollout, *, left: int) -> None:
        """Take one more in. Raises RunFutile when it is the last that is worth while; `left` were not run."""
        failure = _failure(rollout)
        self._seen = self._seen + 1 if failure and failure == self._failure else int(bool(failure))
        self._failure = failure
        if not failure or self._most == 0 or self._seen != self._most:
            return  # those beyond it were under way when it was raised
        assert rollout.error is not None
        said, _, hint = rollout.error.message.partition("\n  hint: ")
        refused = is_refused(rollout.error)
        what = "the model server refused" if refused else "the harness failed in"
        these_too = "" if refused else _THESE_TOO
        raise RunFutile(
            f"{what} {self._seen} rollouts in a row alike, before the model answered at all; "
            f"{left} more were not run: {said}",
            hint=f"{hint + '; ' if hint else ''}then orchard run --resume --out {self._run}{these_too}",
        )


def _failure(rollout: Rollout) -> str:
    """What failed, the same for the same cause; empty: something else, or the model has answered."""
    error = rollout.error
    if error is None or any(call.response for call in rollout.trajectory.calls):
        return ""
    if is_refused(error) and error.status in _ALWAYS:
        return f"{error.kind} {error.status}"
    if is_refused(error) or (rollout.outcome is Outcome.HARNESS_FAILED and not rollout.trajectory.calls):
        return f"{error.kind} {error.status} {_VARYING.sub('#', error.message)}"
    return ""
