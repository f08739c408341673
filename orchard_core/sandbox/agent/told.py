"""A run as its agent tells it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from orchard_core.sandbox.agent import spec
from orchard_core.types.sandbox import ExecResult


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTold:
    """How a run stands."""

    id: str
    """The id that its client made."""
    state: Literal["queued", "running", "exited"]
    """`queued`: it waits for its turn."""
    started: float | None
    """Seconds since the epoch by the agent's clock; None while it waits."""
    result: ExecResult | None
    """How it ended; None until then."""


def told(status: dict[str, Any], output: bytes) -> RunTold:
    """Read off an agent's answer."""
    state = status["state"]
    return RunTold(
        id=status["id"],
        state=state,
        started=status.get("started") or None,
        result=spec.result(status, output) if state == "exited" else None,
    )
