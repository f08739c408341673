"""What this distribution offers; nothing heavy is imported here."""

from __future__ import annotations

from orchard_core import Descriptor, hookimpl


@hookimpl
def orchard_harnesses() -> list[Descriptor]:
    """The harness `miniswe`."""
    return [
        Descriptor(
            name="miniswe",
            summary="mini-swe-agent, the real package: one bash tool, its own configs and templates",
            factory="orchard_harness_miniswe.harness:Miniswe",
            config="orchard_harness_miniswe.settings:MinisweConfig",
            argument="config_file",
            capabilities="orchard_harness_miniswe.harness:CAPABILITIES",
        )
    ]
