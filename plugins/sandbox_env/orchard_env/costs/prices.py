"""A table of prices, as an operator writes it in YAML."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

import yaml
from pydantic import Field, ValidationError, model_validator

from orchard_core import ConfigError, Record

_EXAMPLE = "prices.yaml"


class Rates(Record):
    """Prices of what a sandbox asks for, USD an hour."""

    vcpu_hour: float = Field(ge=0)
    """Of a vCPU."""
    gib_hour: float = Field(ge=0)
    """Of a GiB of memory."""
    gpu_hour: float = Field(default=0.0, ge=0)
    """Of a GPU."""
    spot_factor: float = Field(default=1.0, gt=0, le=1)
    """What a spot machine costs, as a part of the full price."""
    note: str = ""
    """Where the prices are from."""

    def usd_per_hour(self, size: Size, *, spot: bool = False) -> float:
        """Of one sandbox."""
        full = size.cpu * self.vcpu_hour + size.memory_gib * self.gib_hour + size.gpus * self.gpu_hour
        return full * (self.spot_factor if spot else 1.0)


class Size(Record):
    """What one sandbox asks for."""

    cpu: float = Field(ge=0)
    """vCPUs."""
    memory_gib: float = Field(ge=0)
    """GiB."""
    gpus: float = Field(default=0.0, ge=0)
    """GPUs."""


class NodeType(Record):
    """A kind of machine."""

    cpu: float = Field(gt=0)
    """vCPUs."""
    memory_gib: float = Field(gt=0)
    """GiB."""
    gpus: float = Field(default=0.0, ge=0)
    """GPUs."""
    usd_per_hour: float | None = Field(default=None, ge=0)
    """Of the whole machine; None: what its `rates` say."""
    rates: Rates | None = None
    """Of its parts; None: a sandbox pays the largest share that it takes of the machine."""
    spot_factor: float = Field(default=1.0, gt=0, le=1)
    """What it costs as a spot machine, as a part of the full price."""
    most: int = Field(default=110, ge=1)
    """Sandboxes that it takes at most, however small: kubelets are set to 110 pods unless told otherwise."""
    note: str = ""
    """Where the price is from."""

    @model_validator(mode="after")
    def _priced(self) -> NodeType:
        if self.usd_per_hour is None and self.rates is None:
            raise ValueError("a node type needs usd_per_hour or rates")
        return self

    @property
    def whole_usd_per_hour(self) -> float:
        """Of the whole machine, on demand."""
        if self.usd_per_hour is not None:
            return self.usd_per_hour
        assert self.rates is not None
        return self.rates.usd_per_hour(Size(cpu=self.cpu, memory_gib=self.memory_gib, gpus=self.gpus))

    def sandbox_usd_per_hour(self, size: Size, *, spot: bool = False) -> float:
        """Of one sandbox on it."""
        factor = self.spot_factor if spot else 1.0
        if self.rates is not None:
            return self.rates.usd_per_hour(size) * factor
        gpus = size.gpus / self.gpus if self.gpus else 0.0
        return (
            max(size.cpu / self.cpu, size.memory_gib / self.memory_gib, gpus)
            * self.whole_usd_per_hour
            * factor
        )


class PriceTable(Record):
    """What is charged, in USD."""

    note: str = ""
    """Where it is from, and of when."""
    default: Rates
    """For a sandbox of which nobody says what it runs on."""
    nodes: Mapping[str, NodeType] = Field(default_factory=dict)
    """Machines that can be had, by name."""
    services: Mapping[str, Rates] = Field(default_factory=dict)
    """Services that charge by the sandbox, to compare with."""

    def node(self, name: str) -> NodeType:
        """A machine. Raises ConfigError."""
        found = self.nodes.get(name)
        if found is None:
            raise ConfigError(
                f"the price table has no node type {name[:80]!r}",
                hint=f"it has {', '.join(self.nodes) or 'none'}; --prices FILE gives another table",
            )
        return found

    def usd_per_hour(self, size: Size, *, node: str | None, spot: bool) -> float:
        """Of one sandbox, on a node type or on nobody knows what. Raises ConfigError."""
        if node is None:
            return self.default.usd_per_hour(size, spot=spot)
        return self.node(node).sandbox_usd_per_hour(size, spot=spot)


def read_prices(path: Path | None) -> PriceTable:
    """A table from a YAML file; None: the built-in example. Raises ConfigError."""
    where = str(path) if path else "the built-in price table"
    hint = "docs/how-to/what-it-costs.md shows a whole table"
    try:
        text = path.read_text(encoding="utf-8") if path else (files(__package__) / _EXAMPLE).read_text()
        return PriceTable.model_validate(yaml.safe_load(text))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(
            f"{where} cannot be read: {error}", hint="write YAML, as docs/how-to/what-it-costs.md shows"
        ) from error
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"])) or "the table"
        raise ConfigError(f"{where}: {place}: {first['msg']}", hint=hint) from None
