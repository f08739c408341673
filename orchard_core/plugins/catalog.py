"""What was found, good and broken, as `orchard plugins` lists it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from orchard_core.errors import OrchardError
from orchard_core.types.plugin import Descriptor, PluginKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where a plugin comes from."""

    plugin: str
    """Name of its entry point, or `builtin`."""
    module: str
    """What the entry point names."""
    distribution: str
    """Name of the installed distribution."""
    version: str
    """Its version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One thing that can be used."""

    kind: PluginKind
    """What it is."""
    descriptor: Descriptor
    """How it is made."""
    source: Source
    """Who offers it."""


class Fault(StrEnum):
    """Why a plugin is out of use."""

    IMPORT = "failed to import"
    """Importing its entry point raised."""
    REGISTRATION = "failed to register"
    """A hook has a wrong signature, or a registration hook raised or returned something else."""
    API = "wrong API version"
    """A descriptor was written for another plugin API."""
    DUPLICATE = "duplicate name"
    """Another plugin offers the same name of the same kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """A plugin that was rolled back; nothing of it is in use."""

    source: Source
    """Who it is."""
    fault: Fault
    """The sort of failure."""
    error: OrchardError
    """The cause, and the command that mends it."""
    claims: frozenset[tuple[PluginKind, str]] = frozenset()
    """Kinds and names it would have offered, as far as they were learnt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
    """All plugins found by one load."""

    offers: Mapping[tuple[PluginKind, str], Offer] = field(default_factory=dict)
    """What can be used, by kind and name."""
    broken: tuple[Broken, ...] = ()
    """What was rolled back."""
    skipped: tuple[Source, ...] = ()
    """Installed, but left out by an environment variable."""

    def of_kind(self, kind: PluginKind) -> list[Offer]:
        """Offers of one kind by name."""
        return sorted(
            (offer for offer in self.offers.values() if offer.kind is kind),
            key=lambda offer: offer.descriptor.name,
        )
