"""What an operator sets of watching the service."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from pydantic import Field, ValidationError

from orchard_core import ConfigError, Record, SandboxSpec
from orchard_env.costs.prices import Size, read_prices
from orchard_env.service.tenancy.quota import Unstated


class ObserveSettings(Record):
    """Metrics, accounts and who may read them."""

    metrics_key_file: Path | None = None
    """File with a key of its own for GET /metrics, sent as `Authorization: Bearer KEY`: Prometheus then needs
    no administrator's key, which does as well."""
    listen: str | None = None
    """`HOST:PORT` of a second listener that answers GET /metrics alone, without any key: keep strangers from
    its port. None: there is none."""
    prices: Path | None = None
    """Price table; None: the built-in example."""
    node: str | None = None
    """Node type of the table that sandboxes run on; None: the table's `default`."""
    spot: bool = False
    """They run on spot machines."""
    gpus: float = Field(default=0.0, ge=0)
    """GPUs of each sandbox, as the provider is set to give."""
    usage_s: float = Field(default=60.0, ge=0)
    """The agents are asked so often what commands really used, seconds; 0: never."""
    tenants: int = Field(default=200, ge=1)
    """So many tenants have metrics of their own; the rest are `other`."""
    runs: int = Field(default=8192, ge=256)
    """So many ended commands, and at most twice as many, are known to have been counted: one whose end is
    asked for again counts once."""
    status_s: float = Field(default=3600.0, gt=0)
    """A browser that was let in at GET /status has to show a key again after so many seconds."""

    def accounting(self, unstated: Unstated) -> tuple[Callable[[SandboxSpec], Size], Callable[[Size], float]]:
        """How large a sandbox is, and what one of a size costs an hour. Raises ConfigError."""
        table = read_prices(self.prices)
        node = None if self.node is None else table.node(self.node)

        def size(spec: SandboxSpec) -> Size:
            cpu = unstated.cpu if spec.cpu is None else spec.cpu
            memory_mb = unstated.memory_mb if spec.memory_mb is None else spec.memory_mb
            return Size(cpu=cpu, memory_gib=memory_mb / 1024, gpus=self.gpus)

        def usd_per_hour(one: Size) -> float:
            if node is not None:
                return node.sandbox_usd_per_hour(one, spot=self.spot)
            return table.default.usd_per_hour(one, spot=self.spot)

        return size, usd_per_hour

    def metrics_key(self) -> str | None:
        """What the key file holds. Raises ConfigError."""
        if self.metrics_key_file is None:
            return None
        try:
            key = self.metrics_key_file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(
                f"the metrics key {self.metrics_key_file} cannot be read: {error}",
                hint="write the key alone into the file",
            ) from error
        if len(key) < _SHORTEST:
            raise ConfigError(
                f"the metrics key in {self.metrics_key_file} has less than {_SHORTEST} characters",
                hint="make one with `openssl rand -hex 32`",
            )
        return key


_SHORTEST = 16


def observe_settings(told: object) -> ObserveSettings:
    """What the section `observe` of a configuration says, under ORCHARD_ENV_METRICS_LISTEN. Raises
    ConfigError."""
    hint = f"`observe` takes {', '.join(ObserveSettings.model_fields)}"
    if not isinstance(told, Mapping | None):
        raise ConfigError("`observe` is no group of settings", hint=hint)
    fields = dict(told or {})
    listen = os.environ.get("ORCHARD_ENV_METRICS_LISTEN")
    if listen:
        fields["listen"] = listen
    try:
        return ObserveSettings(**fields)
    except (ValidationError, TypeError) as error:
        raise ConfigError(f"`observe` cannot be used: {error}", hint=hint) from error
