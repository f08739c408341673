"""What the service asks of its parts, and what passes between them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from orchard_core import CreationStep, OrchardError, SandboxSpec


class Scope(StrEnum):
    """What a key may do."""

    READ = "read"
    """Look at sandboxes, jobs and files."""
    USE = "use"
    """Run commands, write files, open tunnels, send heartbeats."""
    CREATE = "create"
    """Make and delete sandboxes, snapshots and forks."""
    ADMIN = "admin"
    """Everything of every tenant."""


ALL_SCOPES = frozenset({Scope.READ, Scope.USE, Scope.CREATE})
"""What a key may do within its own tenant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """Who calls: the owner of the key that came with the request."""

    name: str
    """The owner: what the label `orchard.dev/tenant` of its sandboxes says."""
    key_id: str = ""
    """Which of its keys, for logs; never a secret."""
    scopes: frozenset[Scope] = ALL_SCOPES
    """What the key may do."""

    @property
    def is_admin(self) -> bool:
        """Whether it may touch every tenant's sandboxes."""
        return Scope.ADMIN in self.scopes


class Work(StrEnum):
    """Kinds of work that are queued apart."""

    CREATE = "create"
    """Making a sandbox, a snapshot, a fork."""
    EXEC = "exec"
    """Running a command."""
    TRANSFER = "transfer"
    """Files, trees, tunnels, pass-through."""
    LIGHT = "light"
    """All else: status, lists, heartbeats, deletion. Never refused for lack of room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A sandbox as quotas count it."""

    sandbox_id: str
    """Its id."""
    spec: SandboxSpec
    """What it was asked to be."""


Stands = Callable[[], Awaitable[list[Standing]]]
"""Lists what stands in a tenant's name."""


class Tenancy(Protocol):
    """Who calls, and what it may have."""

    async def identify(self, key: str | None) -> Tenant:
        """The owner of an API key. Raises KeyMissing for None, KeyRefused. On the hot path of every call."""

    async def allow_create(self, tenant: Tenant, spec: SandboxSpec, standing: Stands) -> None:
        """Count one sandbox more (`spec.name` is its id) beside those that stand, exact over all replicas.
        The same id counts once. `standing` lists them, and is asked only where the count may be wrong.
        Raises QuotaExceeded."""

    async def freed(self, tenant: str, sandbox_id: str) -> None:
        """The sandbox is gone, or did not come up: count it no more. Fine when it was not counted; never
        raises. What is forgotten here is found when a quota is full, by what stands."""

    def bounds(self, tenant: str) -> Mapping[str, float]:
        """What a tenant may have, by name; what is not named has no bound."""


class Admission(Protocol):
    """Back-pressure."""

    def enter(self, tenant: Tenant, work: Work) -> AbstractAsyncContextManager[None]:
        """Held while the work is done; entering waits for its turn. Raises ServiceOverloaded (503) when the
        queue is full, TooManyRequests (429) when the tenant's share or rate is used up, both with
        `retry_after_s`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEvent:
    """One thing that somebody did or tried."""

    at: float
    """Seconds since the epoch."""
    request_id: str
    """As in the answer and the access log."""
    tenant: str
    """Who; empty when the key was missing or wrong."""
    key_id: str
    """By which key."""
    action: str
    """`sandbox.create`, `sandbox.delete`, `exec`, `file.write`, `key.refused`, ..."""
    sandbox_id: str = ""
    """On what."""
    status: int = 200
    """The HTTP status of the answer."""
    client: str = ""
    """Address of the peer."""
    command: str = ""
    """What was run, as it was given. The log keeps its hash or its beginning, as it is set to, or nothing."""


class Audit(Protocol):
    """Keeps what was done. Never file contents, output or secrets."""

    def record(self, event: AuditEvent) -> None:
        """Keep one event; returns at once and never raises."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Making:
    """How the making of a sandbox went."""

    sandbox_id: str
    """Its id."""
    tenant: str
    """Whose it is."""
    spec: SandboxSpec
    """What it was asked to be."""
    queued_s: float
    """It waited so long for its turn."""
    seconds: float
    """It took so long from its turn on."""
    steps: Mapping[CreationStep, float]
    """What was reached, each so many seconds after its turn came."""
    fault: OrchardError | None
    """Why it did not come up; None when it did."""


class Meters(Protocol):
    """Counts and measures. Every method returns at once and never raises."""

    def arrived(self) -> None:
        """A request has come."""

    def answered(self, route: str, status: int, seconds: float) -> None:
        """It was answered; `route` is a template, such as `/sandboxes/{id}/exec`."""

    def created(self, making: Making) -> None:
        """A sandbox came up or did not."""

    def adopted(self, sandbox_id: str, tenant: str, spec: SandboxSpec) -> None:
        """A sandbox stands that was not made by the fleet: a fork, or another process's."""

    def ended(self, sandbox_id: str, fault: OrchardError | None) -> None:
        """It is no more; None: somebody deleted it. Told more than once of some, and of some that never
        came up."""

    def executed(
        self, tenant: str, outcome: str, seconds: float, overhead_s: float | None = None, *, run: str
    ) -> None:
        """A command ended: `succeeded`, `failed`, `timed_out`. `seconds` is its own time, `overhead_s` what
        the service and its agent took besides, where one request saw all of it. `run` names it: told again,
        it counts once."""

    def exposition(self) -> bytes:
        """All of it as Prometheus reads it."""
