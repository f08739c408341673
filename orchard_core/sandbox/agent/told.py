"""A run as its agent tells it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from orchard_core.errors import SandboxConnectionLost
from orchard_core.sandbox.agent import spec
from orchard_core.sandbox.agent.faults import agent_error
from orchard_core.types.sandbox import ExecResult


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


@contextmanager
def understood() -> Iterator[None]:
    """Around what reads an agent's answer: one that no agent gives is SandboxConnectionLost."""
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise SandboxConnectionLost(
            f"no agent answers so: {error!r}"[:200], hint="something else listens at its address"
        ) from error


def told(status: dict[str, Any], output: bytes) -> RunTold:
    """Read off an agent's answer."""
    state = status["state"]
    failure = status.get("error")
    started = status.get("started") or None
    return RunTold(
        id=status["id"],
        state=state,
        lane=status.get("lane", ""),
        note=status.get("note", ""),
        created=status.get("created") or started,
        started=started,
        ended=status.get("ended"),
        failure=str(failure.get("message", "")) if isinstance(failure, dict) else None,
        result=spec.result(status, output) if state == "exited" else None,
    )


def outcome(status: dict[str, Any], output: bytes) -> ExecResult | None:
    """How it ended; None while it is open. Raises as `exec` when it could not be started at its turn."""
    if status["state"] == "failed":
        raise agent_error(422, json.dumps(status["error"]).encode())
    return spec.result(status, output) if status["state"] == "exited" else None
