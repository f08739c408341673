"""What the shared state gives back, and what it raises."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from orchard_core import SandboxUnavailable

Amounts = tuple[int, ...]
"""Sums of one ledger, side by side; which is what, its user knows."""


class StateUnavailable(SandboxUnavailable):
    """The shared store does not answer, or refuses; what needs no store goes on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The right to do something alone, until it expires."""

    name: str
    """What for."""
    holder: str
    """Who."""
    fence: int
    """Larger for each later holder, even after the store lost everything; what was done under a smaller one
    can be told from it and refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Full:
    """The sum that left no room."""

    index: int
    """Which of the amounts."""
    used: int
    """What it is now."""
    limit: int
    """What it may be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """Entries and their sums."""

    entries: Mapping[str, Amounts]
    """Each entry."""
    totals: Amounts
    """Their sums; empty when there is no entry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table as of one moment."""

    version: int
    """As `Tables.version` gave it then."""
    rows: Mapping[str, bytes]
    """Each row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StateHealth:
    """How it is with the store."""

    shared: bool
    """Whether other replicas see the same; false in memory, and while the store is away."""
    detail: str = ""
    """What is wrong, in words; empty when nothing is."""
    generation: int = 0
    """Grows when the store came back or was found to have forgotten: what was derived is to be looked at."""
