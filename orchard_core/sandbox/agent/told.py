"""A run as its agent tells it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

from orchard_core.sandbox.agent import read, spec
from orchard_core.sandbox.agent.faults import agent_error
from orchard_core.sandbox.agent.understood import understood
from orchard_core.types.sandbox import ExecResult

_STATES = ("queued", "running", "exited", "failed")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTold:
    """How a run stands. Times are seconds since the epoch by the agent's clock, None when not yet."""

    id: str
    """The id that its client made."""
    state: Literal["queued", "running", "exited", "failed"]
    """`queued`: it waits for its turn in its lane; `failed`: it could not be started when that came."""
    lane: str = ""
    """Its lane; empty: none."""
    note: str = ""
    """What whoever started it has noted with it."""
    created: float | None
    """When it was asked for."""
    started: float | None
    """When it began."""
    ended: float | None
    """When it ended."""
    failure: str | None
    """Why it could not be started; None unless `failed`."""
    result: ExecResult | None
    """How it ended; None until then, and when it failed."""

    @property
    def open(self) -> bool:
        """Whether it waits or runs."""
        return self.state in ("queued", "running")


def told(status: dict[str, Any], output: bytes) -> RunTold:
    """Read off an agent's answer. Raises NotAnAgent."""
    with understood():
        state = status["state"]
        if state not in _STATES:
            raise ValueError(f"the state {state!r:.60}")
        failure = status.get("error")
        started = read.number_or_none(status.get("started") or None)
        return RunTold(
            id=read.text(status["id"]),
            state=state,
            lane=read.text(status.get("lane", "")),
            note=read.text(status.get("note", "")),
            created=read.number_or_none(status.get("created") or None) or started,
            started=started,
            ended=read.number_or_none(status.get("ended")),
            failure=read.text(failure.get("message", "")) if isinstance(failure, dict) else None,
            result=spec.result(status, output) if state == "exited" else None,
        )


def outcome(status: dict[str, Any], output: bytes) -> ExecResult | None:
    """How it ended; None while it is open. Raises as `exec` when it could not be started at its turn, and
    NotAnAgent."""
    with understood():
        if status["state"] == "failed":
            raise agent_error(422, json.dumps(status["error"]).encode())
        return spec.result(status, output) if status["state"] == "exited" else None
