"""Mixes that cannot be, however often they are started."""

from __future__ import annotations

from orchard_core.errors import (
    ConfigError,
    CreditRefused,
    DatasetCorrupt,
    DatasetError,
    FormatUnknown,
    PluginError,
    RecordCorrupt,
)


class MixRefused(DatasetError):
    """Nothing is left of the sources, or what is in them is refused by the recipe."""


HOPELESS = (ConfigError, PluginError, DatasetCorrupt, RecordCorrupt, CreditRefused, FormatUnknown, MixRefused)
"""After these the same command would fail in the same way: nothing is kept for the next one to trip over."""
