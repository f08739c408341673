"""What the error that a program reports of its model means."""

from __future__ import annotations

import re

from orchard_core.harness.answered import CONTEXT_WORDS
from orchard_core.types.harness import StopReason

_BUDGET = re.compile(r"budget is used up|budget_exceeded")


def reported_stop(message: str) -> StopReason:
    """Why a program stopped that passes on the gateway's error in words of its own. The gateway's own record
    corrects what is wrong here."""
    if _BUDGET.search(message):
        return StopReason.BUDGET
    if CONTEXT_WORDS.search(message):
        return StopReason.CONTEXT_LIMIT
    return StopReason.MODEL_ERROR
