"""What is so at the moment that Prometheus asks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from orchard_core import __version__
from orchard_env.service.admission.gate import GateLoad
from orchard_env.service.entry import Status
from orchard_env.service.fleet import Fleet
from orchard_env.service.observe.instruments import PREFIX
from orchard_env.service.observe.metrics import Metrics
from orchard_env.service.seams import Work

Loads = Callable[[], Mapping[Work, GateLoad]]
"""How full each gate is."""


class StateCollector(Collector):
    """Reads the fleet, the gates and the accounts."""

    def __init__(
        self, metrics: Metrics, fleet: Fleet, loads: Loads, conditions: Callable[[], Sequence[str]]
    ) -> None:
        self._metrics = metrics
        self._fleet = fleet
        self._loads = loads
        self._conditions = conditions

    def describe(self) -> Iterable[Metric]:
        """Nothing beforehand: registering it must not ask it."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """See Collector."""
        yield self._build()
        yield _gauge("requests_in_flight", "Requests being answered.", self._metrics.in_flight)
        yield _gauge("draining", "1 while the service ends.", int(self._fleet.draining))
        yield _gauge("conditions", "Things that do not work as they should.", len(self._conditions()))
        yield self._sandboxes()
        yield from self._queues()
        yield from self._usage()

    def _build(self) -> Metric:
        family = GaugeMetricFamily(PREFIX + "build_info", "What runs here.", labels=("version", "provider"))
        family.add_metric((__version__, self._fleet.provider.name), 1)
        return family

    def _sandboxes(self) -> Metric:
        family = GaugeMetricFamily(
            PREFIX + "sandboxes", "Sandboxes that this process counts.", labels=("tenant", "state")
        )
        for (tenant, state), number in sorted(by_state(self._metrics, self._fleet).items()):
            family.add_metric((tenant, state), number)
        return family

    def _queues(self) -> Iterable[Metric]:
        loads = self._loads()
        running = GaugeMetricFamily(PREFIX + "admission_running", "Pieces of work at once.", labels=("work",))
        waiting = GaugeMetricFamily(PREFIX + "admission_waiting", "Requests that wait.", labels=("work",))
        refused = CounterMetricFamily(
            PREFIX + "admission_refused", "Requests that were sent away: no room.", labels=("work",)
        )
        for work, load in loads.items():
            running.add_metric((work.value,), load.running)
            waiting.add_metric((work.value,), load.waiting)
            refused.add_metric((work.value,), load.refused)
        return running, waiting, refused

    def _usage(self) -> Iterable[Metric]:
        names = {
            "requested_cpu_seconds": "vCPU-seconds that sandboxes asked for while they stood.",
            "used_cpu_seconds": "CPU-seconds of commands that ended, as the agents tell.",
            "requested_memory_gib_hours": "GiB-hours that sandboxes asked for while they stood.",
            "cost_usd": "What sandboxes cost by the price table.",
        }
        families = [
            CounterMetricFamily(PREFIX + name, about, labels=("tenant",)) for name, about in names.items()
        ]
        for tenant, account in self._metrics.accounts.settled().items():
            sums = (account.cpu_seconds, account.used_cpu_seconds, account.gib_hours, account.usd)
            for family, amount in zip(families, sums, strict=True):
                family.add_metric((tenant,), amount)
        return families


def _gauge(name: str, about: str, value: float) -> Metric:
    return GaugeMetricFamily(PREFIX + name, about, value=value)


def by_state(metrics: Metrics, fleet: Fleet) -> Counter[tuple[str, str]]:
    """How many sandboxes of each tenant are pending, ready, failed."""
    found: Counter[tuple[str, str]] = Counter()
    for entry in fleet.known():
        if entry.status is not Status.READY:
            found[metrics.tenant_label(entry.tenant), entry.status.value] += 1
    for tenant, account in metrics.accounts.settled().items():
        found[tenant, Status.READY.value] = account.standing
    return found
