"""The parts that a service is put together from."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from orchard_env.service.fleet import Fleet
from orchard_env.service.observe.observing import Observing
from orchard_env.service.seams import Admission, Audit, Meters, Tenancy
from orchard_env.service.settings import ServiceSettings
from orchard_env.service.tenancy.saved import SavedFiles


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """Handed to every route; whoever adds a part adds a field."""

    fleet: Fleet
    """The sandboxes."""
    tenancy: Tenancy
    """Who calls, and what it may have."""
    admission: Admission
    """Back-pressure."""
    audit: Audit
    """What was done by whom."""
    meters: Meters
    """Counts and measures."""
    settings: ServiceSettings
    """What the operator set."""
    saved: SavedFiles = field(default_factory=SavedFiles)
    """Which snapshots stand in whose name."""
    watch: Observing | None = None
    """Metrics, traces and the status page; None: nobody watches. Its metrics are the `meters`."""
    conditions: Callable[[], Sequence[str]] = tuple
    """What does not work as it should, in words, for /health; costs nothing. It serves all the same."""
    secret: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)
    """Signs what clients hold, such as the names of snapshots. Replicas share one; without one of its own a
    service forgets what it signed when it ends."""
