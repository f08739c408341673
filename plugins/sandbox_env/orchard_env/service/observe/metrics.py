"""The service's meters, read by Prometheus."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.process_collector import ProcessCollector

from orchard_core import CreationStep, OrchardError, SandboxGone, SandboxSpec
from orchard_env.service.log import SERVICE
from orchard_env.service.observe.accounts import Accounts
from orchard_env.service.observe.instruments import PREFIX, Instruments
from orchard_env.service.observe.labels import BoundedLabel, Remembered
from orchard_env.service.observe.reasons import attribution
from orchard_env.service.observe.tally import Tally
from orchard_env.service.seams import Making

_POOL = {CreationStep.POOL_HIT: "hit", CreationStep.POOL_MISS: "miss"}
_ROUTES, _REASONS = 300, 100


class Metrics:
    """Honours `Meters`. A request costs a few microseconds."""

    def __init__(
        self,
        accounts: Accounts,
        *,
        tenants: int = 200,
        runs: int = 8192,
        counts_adopted: bool = True,
        made: Callable[[Making], None] = lambda _: None,
    ) -> None:
        """`tenants`: so many are told apart. `runs`: so many ended commands are remembered. Without
        `counts_adopted` what other processes made is left to them. `made` is told of each making, too."""
        self.registry = CollectorRegistry()
        """All of it."""
        self.accounts = accounts
        """What tenants asked for."""
        self.tally = Tally()
        """The same events as plain sums, for people."""
        self.tenant_label = BoundedLabel(tenants)
        """How tenants are called in labels."""
        self._began = time.monotonic()
        self.in_flight = 0
        """Requests that are being answered."""
        self._counts_adopted = counts_adopted
        self._made = made
        self._route_label, self._reason_label = BoundedLabel(_ROUTES), BoundedLabel(_REASONS)
        self._instruments = Instruments(self.registry)
        self._answers: dict[tuple[str, int], tuple[Counter, Histogram]] = {}
        self._runs = Remembered(runs)
        self._execs: dict[tuple[str, str], Counter] = {}
        ProcessCollector(namespace=PREFIX.rstrip("_"), registry=self.registry)

    @property
    def up_s(self) -> float:
        """Seconds since it began to count."""
        return time.monotonic() - self._began

    def arrived(self) -> None:
        """See Meters."""
        self.in_flight += 1

    def answered(self, route: str, status: int, seconds: float) -> None:
        """See Meters."""
        self.in_flight -= 1
        self.tally.requests += 1
        found = self._answers.get((route, status)) or self._answer(route, status)
        found[0].inc()
        found[1].observe(seconds)

    def _answer(self, route: str, status: int) -> tuple[Counter, Histogram]:
        label = self._route_label(route)
        made = (
            self._instruments.requests.labels(label, str(status)),
            self._instruments.request_seconds.labels(label),
        )
        if len(self._answers) < 4 * _ROUTES:
            self._answers[route, status] = made
        return made

    def created(self, making: Making) -> None:
        """See Meters."""
        tenant, fault = self.tenant_label(making.tenant), making.fault
        outcome = "ready" if fault is None else _outcome(fault)
        self.tally.made(outcome, making.seconds)
        self._instruments.creates.labels(tenant, self._reason_label(outcome)).inc()
        self._instruments.create_seconds.labels("ready" if fault is None else "failed").observe(
            making.seconds
        )
        self._phases(making)
        if fault is None:
            self.accounts.begin(making.sandbox_id, tenant, making.spec)
        elif outcome != _DELETED:
            self._failed("create", fault)
        try:
            self._made(making)
        except Exception:  # noqa: BLE001 - a tracer's fault costs no sandbox
            SERVICE.exception("a creation could not be traced")

    def _phases(self, making: Making) -> None:
        for phase, seconds in phases(making).items():
            self._instruments.phase_seconds.labels(phase).observe(seconds)
        for step, result in _POOL.items():
            if step in making.steps:
                self._instruments.pool_claims.labels(result).inc()
                self.tally.pool[result] += 1

    def adopted(self, sandbox_id: str, tenant: str, spec: SandboxSpec) -> None:
        """See Meters."""
        if self._counts_adopted:
            self.accounts.begin(sandbox_id, self.tenant_label(tenant), spec)

    def ended(self, sandbox_id: str, fault: OrchardError | None) -> None:
        """See Meters."""
        if self.accounts.end(sandbox_id) and fault is not None:
            self._failed("life", fault)

    def _failed(self, stage: str, fault: OrchardError) -> None:
        reason = self._reason_label(type(fault).__name__)
        self.tally.failures[reason] += 1
        self._instruments.failures.labels(stage, reason, attribution(fault)).inc()

    def executed(
        self, tenant: str, outcome: str, seconds: float, overhead_s: float | None = None, *, run: str
    ) -> None:
        """See Meters."""
        if not self._runs.is_new(run):
            return
        label = self.tenant_label(tenant)
        self.tally.ran(label, overhead_s)
        counter = self._execs.get((label, outcome))
        if counter is None:
            counter = self._instruments.execs.labels(label, self._reason_label(outcome))
            self._execs[label, outcome] = counter
        counter.inc()
        self._instruments.exec_seconds.observe(seconds)
        if overhead_s is not None:
            self._instruments.overhead_seconds.observe(overhead_s)

    def exposition(self) -> bytes:
        """See Meters."""
        return generate_latest(self.registry)


_DELETED = "deleted"


def _outcome(fault: OrchardError) -> str:
    """Exactly SandboxGone before it stood: its owner deleted it."""
    return _DELETED if type(fault) is SandboxGone else type(fault).__name__


def phases(making: Making) -> Mapping[str, float]:
    """How long each phase took, seconds, in their order; those that nobody noted are part of the next."""
    found = {"queued": making.queued_s}
    before = 0.0
    for step, at in sorted(making.steps.items(), key=lambda noted: noted[1]):
        if step not in _POOL:
            found[step.value] = max(0.0, at - before)
            before = at
    return found
