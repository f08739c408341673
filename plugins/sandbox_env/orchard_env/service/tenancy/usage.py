"""What a tenant has."""

from __future__ import annotations

from orchard_core import Record
from orchard_env.service.tenancy.quota import Quota


class Usage(Record):
    """A tenant's sums beside its quota."""

    tenant: str
    """Whose."""
    sandboxes: int
    """Standing, or coming up."""
    cpu: float
    """CPU cores of them together."""
    memory_mb: int
    """Memory of them together, MiB."""
    snapshots: int = 0
    """Snapshots that stand."""
    snapshots_mb: int = 0
    """Disk of them together, MiB."""
    quota: Quota
    """What it may have."""
