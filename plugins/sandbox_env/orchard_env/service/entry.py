"""One sandbox of the service, from the request that asks for it to its end."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import StrEnum

from orchard_core import (
    AgentClient,
    AgentSandbox,
    CreateTimedOut,
    OrchardError,
    Sandbox,
    SandboxCreateFailed,
    SandboxGone,
    SandboxSpec,
    SandboxUnsupported,
)
from orchard_env.service.faults import SandboxBusy, WaitEnded

TENANT_LABEL = "orchard.dev/tenant"
"""Who owns a sandbox: a label of its spec, so that it survives whoever made it."""


_SERIALS = itertools.count(1)


class Status(StrEnum):
    """How a sandbox stands."""

    PENDING = "pending"
    """It is being made."""
    READY = "ready"
    """Its agent answered."""
    FAILED = "failed"
    """It did not come up, or it has ended; the entry's `fault` says why."""


class Entry:
    """A sandbox and what the service knows of it. Made by `Fleet` alone."""

    def __init__(self, *, sandbox_id: str, spec: SandboxSpec, created: float, found: bool = False) -> None:
        """`found`: it stands, and nobody has taken it over yet; such a one is only looked at."""
        self.id = sandbox_id
        """The id that clients use; the spec's name."""
        self.serial = next(_SERIALS)
        """Tells it from every other sandbox that this process had, also from one of the same id."""
        self.spec = spec
        """What it was asked to be; its labels carry the owner."""
        self.created = created
        """Seconds since the epoch."""
        self.queued_s = 0.0
        """Seconds that it waited for its turn to be made."""
        self.settled = asyncio.Event()
        """Set when it is pending no more."""
        self._sandbox: Sandbox | None = None
        self._fault: OrchardError | None = None
        self._found = found
        self._failed_at = 0.0
        self.counted_out = False
        """Whether its tenant was told that it counts no more."""

    @property
    def tenant(self) -> str:
        """Its owner's name; empty when nobody's label says so."""
        return self.spec.labels.get(TENANT_LABEL, "")

    @property
    def status(self) -> Status:
        """How it stands, as far as is known without asking it."""
        if self.fault is not None:
            return Status.FAILED
        return Status.READY if self._found or self._sandbox is not None else Status.PENDING

    @property
    def fault(self) -> OrchardError | None:
        """Why it failed or ended; None while it is well."""
        if self._fault is None and isinstance(self._sandbox, AgentSandbox):
            fault = self._sandbox.fault
            if fault is not None:
                self.fail(fault)
        return self._fault

    @property
    def workdir(self) -> str:
        """Where its commands start; empty unless it is ready."""
        if self.status is not Status.READY:
            return ""
        return self.spec.workdir if self._sandbox is None else self._sandbox.spec.workdir

    def succeed(self, sandbox: Sandbox) -> None:
        """It came up."""
        self._sandbox = sandbox
        self.settled.set()

    def fail(self, fault: OrchardError) -> None:
        """It did not, or it is no more."""
        self._fault = fault.with_traceback(None)
        self._fault.__cause__ = self._fault.__context__ = None
        self._failed_at = time.monotonic()
        self.settled.set()

    @property
    def failed_s(self) -> float:
        """Seconds since it was seen to have failed."""
        return time.monotonic() - self._failed_at if self._fault is not None else 0.0

    async def close(self) -> None:
        """End what there is of it, and let go of it: who still has the entry then has its name and its fault
        alone. Never raises."""
        if self._sandbox is not None:
            await self._sandbox.close()
        self.fail(self._fault or SandboxGone(f"sandbox {self.id} was deleted"))
        self._sandbox = None

    async def ready(self, timeout: float) -> Sandbox:
        """The sandbox, after waiting at most `timeout` seconds for it to come up. Raises WaitEnded, and what
        kept it from coming up."""
        if not self.settled.is_set():
            try:
                async with asyncio.timeout(timeout):
                    await self.settled.wait()
            except TimeoutError:
                raise WaitEnded(
                    f"sandbox {self.id} is not ready after {timeout:g} s; it is still being made",
                    hint="wait again, or ask for its status",
                ) from None
        return self.sandbox

    @property
    def sandbox(self) -> Sandbox:
        """The sandbox itself. Raises SandboxBusy while it is being made, and its fault when it has one."""
        fault = self.fault
        if isinstance(fault, CreateTimedOut):  # told to who waits; for who comes later it failed
            raise SandboxCreateFailed(fault.message, hint=fault.hint)
        if fault is not None:
            raise fault.with_traceback(None)  # else each raise adds its frames, and they what they hold
        if self._sandbox is None:
            raise SandboxBusy(
                f"sandbox {self.id} is still being made",
                hint=f"GET /sandboxes/{self.id}/wait returns when it is ready",
            )
        return self._sandbox

    @asynccontextmanager
    async def lent(self) -> AsyncIterator[AgentClient]:
        """Its agent's client with every right, while held a use of the sandbox. Raises as `sandbox`, and
        SandboxUnsupported for a sandbox without an agent of ours."""
        sandbox = self.sandbox
        if not isinstance(sandbox, AgentSandbox):
            raise SandboxUnsupported(
                f"sandbox {self.id} has no agent that a service could speak to",
                hint="serve a provider whose sandboxes run Orchard's agent, such as local or kubernetes",
            )
        try:
            async with sandbox.lent() as client:
                yield client
        except SandboxGone as error:
            if type(error) is not SandboxGone:  # who watches over it has said what became of it
                self.fail(error)
            raise
