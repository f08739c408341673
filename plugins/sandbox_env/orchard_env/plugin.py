"""What this distribution offers; nothing heavy is imported here."""

from __future__ import annotations

from orchard_core import Descriptor, hookimpl


@hookimpl
def orchard_sandbox_providers() -> list[Descriptor]:
    """The providers `kubernetes` and `remote`."""
    return []
