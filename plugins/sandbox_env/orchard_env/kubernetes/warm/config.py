"""What an operator says of one pool."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from orchard_core import ConfigError, Record


class PoolConfig(Record):
    """Pods of one image and size that are kept ready. A sandbox takes one when everything that makes pods
    differ is the same: what is given here, and this provider's other options."""

    name: str = Field(pattern=r"^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$")
    """For people and for metrics."""
    image: str
    """An image reference, without `oci:`."""
    cpu: float | None = Field(default=None, gt=0)
    """Cores, as in a sandbox's spec."""
    memory_mb: int | None = Field(default=None, gt=0)
    """MiB, as in a sandbox's spec."""
    disk_mb: int | None = Field(default=None, gt=0)
    """MiB, as in a sandbox's spec."""
    user: str | None = None
    """As in a sandbox's spec."""
    workdir: str = "/workspace"
    """As in a sandbox's spec."""
    least: int = Field(default=0, ge=0, le=10_000)
    """So many are ready whatever the demand."""
    most: int = Field(default=10, ge=1, le=10_000)
    """Never more than so many."""
    target: int | None = Field(default=None, ge=0)
    """So many, always; None: as many as the forecast says, between `least` and `most`."""
    margin: float = Field(default=2.0, ge=0, le=10)
    """Standard deviations of the forecast demand that are kept on top of it."""
    window_s: float = Field(default=120.0, ge=1)
    """Time constant of the forecast: demand this long ago counts by 1/e, seconds."""

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.least > self.most:
            raise ConfigError(
                f"the pool {self.name} is to have at least {self.least} pods and at most {self.most}",
                hint="give a larger `most`",
            )
        return self
