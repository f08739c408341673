"""Every metric that is counted as things happen. docs/reference/orchard-env-metrics.md tells of each."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics

PREFIX = "orchard_env_"
_QUICK = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60, 300)
_CREATE = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600)
_COMMAND = (0.005, 0.025, 0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600)


class Instruments:
    """All of them, in one registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # a moment of birth beside each series doubles their number

        def counter(name: str, about: str, *labels: str) -> Counter:
            return Counter(PREFIX + name, about, labels, registry=registry)

        def histogram(name: str, about: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
            return Histogram(PREFIX + name, about, labels, buckets=buckets, registry=registry)

        self.requests = counter("requests", "Requests answered.", "route", "status")
        self.request_seconds = histogram(
            "request_seconds", "Time from a request to the end of its answer.", _QUICK, "route"
        )
        self.creates = counter("creates", "Sandboxes asked for that came up or did not.", "tenant", "outcome")
        self.create_seconds = histogram(
            "create_seconds",
            "Time from its turn until a sandbox was ready or had failed.",
            _CREATE,
            "outcome",
        )
        self.phase_seconds = histogram(
            "create_phase_seconds", "Time that each phase of a creation took.", _CREATE, "phase"
        )
        self.failures = counter(
            "failures",
            "Sandboxes that did not come up, or ended by themselves.",
            "stage",
            "reason",
            "attribution",
        )
        self.execs = counter("execs", "Commands that ended.", "tenant", "outcome")
        self.exec_seconds = histogram("exec_seconds", "Commands' own time.", _COMMAND)
        self.overhead_seconds = histogram(
            "exec_overhead_seconds", "What service and agent took besides a command's own time.", _QUICK
        )
        self.pool_claims = counter("pool_claims", "Sandboxes asked of a warm pool.", "result")
