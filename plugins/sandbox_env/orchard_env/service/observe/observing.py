"""The parts that watch a service, begun and ended together."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from orchard_env.service.admission.gate import GateLoad
from orchard_env.service.fleet import Fleet
from orchard_env.service.observe.accounts import Accounts
from orchard_env.service.observe.listener import metrics_listener
from orchard_env.service.observe.metrics import Metrics
from orchard_env.service.observe.settings import ObserveSettings
from orchard_env.service.observe.spans import Spans, open_spans
from orchard_env.service.observe.state import StateCollector
from orchard_env.service.observe.usage import UsageReader
from orchard_env.service.seams import Work
from orchard_env.service.tenancy.quota import Unstated


@dataclass(frozen=True, slots=True, kw_only=True)
class Observing:
    """What watches one service."""

    settings: ObserveSettings
    """What the operator set."""
    metrics: Metrics
    """Counts and measures."""
    spans: Spans
    """Traces."""
    metrics_key: str | None = field(repr=False)
    """Does for GET /metrics, and for nothing else."""
    loads: Callable[[], Mapping[Work, GateLoad]] = dict
    """How full each gate is."""

    def opens_metrics(self, key: str) -> bool:
        """Whether it is the key for GET /metrics."""
        return self.metrics_key is not None and hmac.compare_digest(key.encode(), self.metrics_key.encode())


def observing(
    settings: ObserveSettings,
    *,
    unstated: Unstated | None = None,
    alone: bool = True,
    loads: Callable[[], Mapping[Work, GateLoad]] = dict,
) -> Observing:
    """Parts that watch nothing yet. `alone`: no other process serves the same sandboxes. Raises ConfigError
    for prices, a key file, or an extra that is not there."""
    size, usd_per_hour = settings.accounting(unstated or Unstated())
    spans = open_spans()
    metrics = Metrics(
        Accounts(size=size, usd_per_hour=usd_per_hour),
        tenants=settings.tenants,
        runs=settings.runs,
        counts_adopted=alone,
        made=spans.made,
    )
    return Observing(
        settings=settings, metrics=metrics, spans=spans, metrics_key=settings.metrics_key(), loads=loads
    )


@asynccontextmanager
async def watching(
    watch: Observing, fleet: Fleet, conditions: Callable[[], Sequence[str]] = tuple
) -> AsyncIterator[None]:
    """Watch a fleet until it is left. Raises ConfigError for a listener's address that cannot be had."""
    watch.metrics.registry.register(StateCollector(watch.metrics, fleet, watch.loads, conditions))
    async with AsyncExitStack() as stack:
        stack.push_async_callback(asyncio.to_thread, watch.spans.close)
        if watch.settings.usage_s:
            reader = UsageReader(fleet, watch.metrics.accounts, every_s=watch.settings.usage_s)
            reader.start()
            stack.push_async_callback(reader.close)
        if watch.settings.listen:
            await stack.enter_async_context(metrics_listener(watch.settings.listen, watch.metrics.exposition))
        yield
