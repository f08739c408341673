"""Workforces by name."""

from __future__ import annotations

from orchard_core.plugins.lookup import load_as
from orchard_core.rollout.workers.contract import Workforce
from orchard_core.types.plugin import PluginKind


def load_workforce(spec: str, **options: object) -> Workforce:
    """A workforce, such as `processes`. Raises as the other look-ups."""
    return load_as(PluginKind.WORKFORCE, Workforce, spec, options)
