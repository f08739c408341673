"""What a provider does for one sandbox; everything else goes through the agent inside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from orchard_core.errors import SandboxGone
from orchard_core.sandbox.agent import AgentClient
from orchard_core.sandbox.contract import Sandbox
from orchard_core.types.sandbox import Snapshot


class Place(Protocol):
    """What a provider does for one sandbox; everything else goes through the agent."""

    async def restart(self) -> AgentClient:
        """Kill everything inside, start a new agent with a new token on the same files. Raises
        SandboxCreateFailed."""

    async def destroy(self) -> None:
        """Remove the sandbox from the world; repeated calls are fine, and never raises."""

    def ended(self) -> str | None:
        """Why nothing runs there any more, for people; None while it runs or when nobody knows."""


@runtime_checkable
class TellingPlace(Place, Protocol):
    """A place that somebody else watches over, such as a cluster, and who may take seconds to tell."""

    async def verdict(self) -> SandboxGone | None:
        """Why nothing runs there any more, asked when the agent has stopped answering; None when it seems to
        live on. Within a few seconds, and never raises."""


@runtime_checkable
class WatchedPlace(TellingPlace, Protocol):
    """One whose watcher tells unasked."""

    def on_fall(self, told: Callable[[SandboxGone], None]) -> None:
        """Have `told` called, in this loop, when who watches over it says that it is dead."""

    def fallen(self) -> SandboxGone | None:
        """What `ended` says, as an error of its class."""


@runtime_checkable
class ProlongingPlace(Place, Protocol):
    """A place that keeps the sandbox's time itself."""

    async def prolong(self, ttl_s: float) -> None:
        """Let it live at least so many seconds more, from now on, for whichever process has it. Raises
        SandboxGone, SandboxUnavailable, SandboxUnsupported."""


class Copies(Protocol):
    """What a provider that can copy files does for one sandbox."""

    async def snapshot(self) -> Snapshot:
        """See Sandbox. Raises SandboxGone when the sandbox ends meanwhile, DiskFull."""

    async def fork(self, count: int) -> list[Sandbox]:
        """See Sandbox. Raises likewise, and as `SandboxProvider.create`."""
