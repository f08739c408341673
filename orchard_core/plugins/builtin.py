"""What orchard-core itself offers, registered by the same hooks as any plugin."""

from __future__ import annotations

from orchard_core.plugins.hookspecs import hookimpl
from orchard_core.types.plugin import Descriptor


@hookimpl
def orchard_sandbox_providers() -> list[Descriptor]:
    """Providers that need nothing but this machine."""
    return []


@hookimpl
def orchard_tasksets() -> list[Descriptor]:
    """Task sets from directories, and our own generated ones."""
    return []


@hookimpl
def orchard_models() -> list[Descriptor]:
    """Models behind an OpenAI-compatible URL, and models that follow a script."""
    scripted = "orchard_core.gateway.scripted"
    return [
        Descriptor(
            name="oracle",
            summary="plays the task's known solution, one command a turn",
            factory=f"{scripted}:OracleModel",
            config=f"{scripted}:OracleConfig",
        ),
        Descriptor(
            name="noisy-oracle",
            summary="the oracle with mistakes at a given rate, such as noisy-oracle:0.3",
            factory=f"{scripted}:NoisyOracleModel",
            config=f"{scripted}:NoisyOracleConfig",
            argument="rate",
        ),
        Descriptor(
            name="scripted",
            summary="replies from a JSON-lines file",
            factory=f"{scripted}:from_file",
            config=f"{scripted}:ScriptedConfig",
            argument="path",
        ),
    ]
