"""What a service process is doing, as its operator sees it."""

from __future__ import annotations

from orchard_core import Record


class SandboxRow(Record):
    """One sandbox."""

    id: str
    """Its id."""
    tenant: str
    """Whose it is."""
    status: str
    """`pending`, `ready` or `failed`."""
    image: str
    """What it was made from."""
    cpu: float
    """vCPUs that it asks for."""
    memory_gib: float
    """GiB that it asks for."""
    age_s: float
    """Seconds since it was asked for."""
    fault: str | None = None
    """Class of the error that it failed with."""


class TenantRow(Record):
    """One tenant's sums."""

    tenant: str
    """As in the metrics: printable, and `other` for those beyond the bound."""
    pending: int
    """Sandboxes that are being made."""
    ready: int
    """Sandboxes that stand."""
    failed: int
    """Sandboxes that did not come up or ended by themselves, lately."""
    cpu: float
    """vCPUs that the standing ones ask for."""
    memory_gib: float
    """GiB that these ask for."""
    execs: int
    """Commands that ended, since the process began."""
    cpu_hours: float
    """vCPU-hours asked for, since the process began."""
    used_cpu_hours: float
    """CPU-hours that commands used, as far as the agents told."""
    gib_hours: float
    """GiB-hours asked for."""
    usd: float
    """What that cost by the price table."""


class QueueRow(Record):
    """One kind of work."""

    work: str
    """`create`, `exec` or `transfer`."""
    running: int
    """Pieces of it at once."""
    waiting: int
    """Requests that wait."""
    refused: int
    """Requests that were sent away, since the process began."""


class FailureRow(Record):
    """One reason."""

    reason: str
    """Class of the error."""
    count: int
    """How often, since the process began."""


class Overview(Record):
    """One process of a service. Behind several, each tells of what it made itself."""

    at: float
    """When, seconds since the epoch."""
    up_s: float
    """Seconds since the process began."""
    version: str
    """What runs."""
    provider: str
    """Who makes the sandboxes."""
    draining: bool
    """Whether it is about to end."""
    conditions: tuple[str, ...]
    """What does not work as it should, in words."""
    in_flight: int
    """Requests being answered, without the one that asks for this."""
    requests: int
    """Requests answered, since the process began; so are the sums below."""
    created: int
    """Sandboxes that came up."""
    create_s: float
    """Seconds that these took together."""
    execs: int
    """Commands that ended."""
    timed: int
    """Commands of which the overhead is known."""
    overhead_s: float
    """Seconds of overhead of these together."""
    pool_hits: int
    """Sandboxes that a warm pool had."""
    pool_misses: int
    """Sandboxes that it had not."""
    tenants: tuple[TenantRow, ...]
    """Every tenant that has or had something, by cost."""
    queues: tuple[QueueRow, ...]
    """Back-pressure."""
    failures: tuple[FailureRow, ...]
    """What went wrong, the most frequent first."""
    sandboxes: tuple[SandboxRow, ...]
    """The newest, as many as were asked for."""
    sandboxes_known: int
    """How many there are in all, failed ones included."""
