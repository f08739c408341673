"""The parts that a service is put together from."""

from __future__ import annotations

from dataclasses import dataclass

from orchard_env.service.fleet import Fleet
from orchard_env.service.seams import Admission, Audit, Meters, Tenancy
from orchard_env.service.settings import ServiceSettings


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
