"""What orchard-core itself offers, registered by the same hooks as any plugin."""

from __future__ import annotations

from orchard_core.plugins.hookspecs import hookimpl
from orchard_core.types.plugin import Descriptor


@hookimpl
def orchard_sandbox_providers() -> list[Descriptor]:
    """The built-in sandbox providers."""
    return []
