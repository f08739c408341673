"""What a tenant may have at once, and how fast it may ask."""

from __future__ import annotations

import math

from pydantic import Field

from orchard_core import Record, SandboxSpec
from orchard_env.service.state.values import Amounts

NAMES = ("sandboxes", "CPU cores", "MiB of memory")
"""What the sums of a tenant's ledger are of; cores are counted in thousandths."""


class Quota(Record):
    """Limits of one tenant; None is no limit."""

    sandboxes: int | None = Field(default=None, ge=0)
    """Sandboxes at once."""
    cpu: float | None = Field(default=None, ge=0)
    """CPU cores of all its sandboxes together."""
    memory_mb: int | None = Field(default=None, ge=0)
    """Memory of all its sandboxes together, MiB."""
    snapshots: int | None = Field(default=None, ge=0)
    """Snapshots that stand; the copy that a fork is made from does not count."""
    snapshots_mb: int | None = Field(default=None, ge=0)
    """Disk of them together, MiB."""
    creates_per_min: float | None = Field(default=None, gt=0)
    """Sandboxes asked for, a minute on the average; a sixth of a minute's may come at once."""
    execs_per_s: float | None = Field(default=None, gt=0)
    """Commands begun, a second on the average; two seconds' may come at once."""

    @property
    def limits(self) -> Amounts:
        """The limits of its ledger."""
        cpu = None if self.cpu is None else round(self.cpu * 1000)
        return tuple(-1 if limit is None else limit for limit in (self.sandboxes, cpu, self.memory_mb))

    @property
    def snapshot_limits(self) -> Amounts:
        """The limits of its snapshots: how many, and how many bytes."""
        size = -1 if self.snapshots_mb is None else self.snapshots_mb << 20
        return (-1 if self.snapshots is None else self.snapshots, size)


class Unstated(Record):
    """What a sandbox counts as whose spec leaves it to the provider."""

    cpu: float = Field(default=1.0, ge=0)
    """CPU cores."""
    memory_mb: int = Field(default=2048, ge=0)
    """MiB."""

    def amounts(self, spec: SandboxSpec) -> Amounts:
        """What a sandbox adds to its tenant's sums."""
        cpu = self.cpu if spec.cpu is None else spec.cpu
        memory = self.memory_mb if spec.memory_mb is None else spec.memory_mb
        return (1, math.ceil(cpu * 1000), memory)


def in_words(index: int, amount: int) -> str:
    """One sum as people read it, such as `12.5 CPU cores`."""
    return f"{amount / 1000:g} {NAMES[1]}" if index == 1 else f"{amount} {NAMES[index]}"
