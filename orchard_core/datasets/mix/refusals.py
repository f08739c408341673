"""Mixes that cannot be, however often they are started."""

from __future__ import annotations

from orchard_core.errors import (
    ConfigError,
    CreditRefused,
    DatasetCorrupt,
    FormatUnknown,
    MixRefused,
    PluginError,
    RecordCorrupt,
)

HOPELESS = (ConfigError, PluginError, DatasetCorrupt, RecordCorrupt, CreditRefused, FormatUnknown, MixRefused)
"""After these the same command would fail in the same way: nothing is kept for the next one to trip over."""
