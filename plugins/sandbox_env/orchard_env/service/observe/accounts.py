"""What each tenant's sandboxes have asked for, used and cost so far, in this process."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from orchard_core import SandboxSpec
from orchard_env.costs.prices import Size

_HOUR_S = 3600.0


@dataclass(slots=True, kw_only=True)
class Account:
    """One tenant's sums."""

    standing: int = 0
    """Sandboxes that stand now."""
    cpu: float = 0.0
    """vCPUs that these ask for."""
    memory_gib: float = 0.0
    """GiB that these ask for."""
    usd_per_hour: float = 0.0
    """What these cost."""
    cpu_seconds: float = 0.0
    """vCPU-seconds asked for so far."""
    used_cpu_seconds: float = 0.0
    """CPU-seconds that commands have used so far, as the agents tell."""
    gib_hours: float = 0.0
    """GiB-hours asked for so far."""
    usd: float = 0.0
    """Cost so far."""
    since: float = 0.0
    """The sums are of this moment."""


@dataclass(slots=True, kw_only=True)
class _Standing:
    """A sandbox that is counted."""

    tenant: str
    size: Size
    usd_per_hour: float
    used: float = 0.0
    asked_at: float = field(default=0.0)


class Accounts:
    """Sums by tenant. Beginning and ending cost the same however many sandboxes stand."""

    def __init__(
        self,
        *,
        size: Callable[[SandboxSpec], Size],
        usd_per_hour: Callable[[Size], float],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.size = size
        """How large a sandbox is by its spec."""
        self._usd_per_hour = usd_per_hour
        self._clock = clock
        self._accounts: dict[str, Account] = {}
        self._standing: dict[str, _Standing] = {}

    def begin(self, sandbox_id: str, tenant: str, spec: SandboxSpec) -> None:
        """It stands from now on. The same id counts once."""
        if sandbox_id in self._standing:
            return
        size = self.size(spec)
        one = _Standing(
            tenant=tenant, size=size, usd_per_hour=self._usd_per_hour(size), asked_at=self._clock()
        )
        self._standing[sandbox_id] = one
        self._change(one, 1)

    def end(self, sandbox_id: str) -> bool:
        """It stands no more. Whether it was counted."""
        one = self._standing.pop(sandbox_id, None)
        if one is not None:
            self._change(one, -1)
        return one is not None

    def _change(self, one: _Standing, by: int) -> None:
        account = self._settled(self._accounts.setdefault(one.tenant, Account(since=self._clock())))
        account.standing += by
        account.cpu += by * one.size.cpu
        account.memory_gib += by * one.size.memory_gib
        account.usd_per_hour += by * one.usd_per_hour
        if not account.standing:  # what rounding left over is not charged for ever
            account.cpu = account.memory_gib = account.usd_per_hour = 0.0

    def used(self, sandbox_id: str, cpu_seconds: float) -> None:
        """The agent of a sandbox has told how much its commands used since it began. It is a sandbox's word:
        no more is believed than its CPUs can have done."""
        one = self._standing.get(sandbox_id)
        if one is None or not cpu_seconds >= 0:
            return
        now = self._clock()
        since = cpu_seconds - one.used if cpu_seconds >= one.used else cpu_seconds
        most = (now - one.asked_at) * max(one.size.cpu, 1.0)
        one.used, one.asked_at = cpu_seconds, now
        self._accounts[one.tenant].used_cpu_seconds += min(since, most)

    def counts(self, sandbox_id: str) -> bool:
        """Whether it is one that stands here."""
        return sandbox_id in self._standing

    def settled(self) -> Mapping[str, Account]:
        """Every tenant's sums, as of now."""
        for account in self._accounts.values():
            self._settled(account)
        return self._accounts

    def _settled(self, account: Account) -> Account:
        now = self._clock()
        past, account.since = now - account.since, now
        account.cpu_seconds += account.cpu * past
        account.gib_hours += account.memory_gib * past / _HOUR_S
        account.usd += account.usd_per_hour * past / _HOUR_S
        return account
