"""What a rollout needs of the gateway."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from orchard_core.errors import BudgetExceeded, ModelError
from orchard_core.gateway.contract import BeforeCall, Model, SessionContext
from orchard_core.tasks.contract import Tool
from orchard_core.types.harness import Limits
from orchard_core.types.model import ModelCall, ModelEndpoint
from orchard_core.types.trajectory import Trajectory


class ModelSession(Protocol):
    """One recorded key."""

    @property
    def endpoint(self) -> ModelEndpoint:
        """What a harness is given."""

    @property
    def exhausted(self) -> BudgetExceeded | None:
        """The budget that ran out."""

    @property
    def last_error(self) -> ModelError | None:
        """The error of the newest call, None when it was answered."""

    @property
    def waited_s(self) -> float:
        """Seconds spent waiting for a slot, a rate limit or a retry."""

    def trajectory(self) -> Trajectory:
        """What was recorded until now."""

    async def close(self) -> Trajectory:
        """Revoke the key and end calls in flight."""


class ModelGateway(Protocol):
    """Opens sessions."""

    async def open_session(
        self,
        model: Model,
        context: SessionContext,
        *,
        limits: Limits = ...,
        before_call: BeforeCall | None = None,
        on_call: Callable[[ModelCall], None] | None = None,
        tools: Sequence[Tool] = (),
    ) -> ModelSession:
        """A session whose key serves this model only, and these tools over HTTP."""
