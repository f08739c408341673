"""What this distribution offers; nothing heavy is imported here."""

from __future__ import annotations

from orchard_core import Descriptor, hookimpl


@hookimpl
def orchard_harnesses() -> list[Descriptor]:
    """The harness `openhands`."""
    return [
        Descriptor(
            name="openhands",
            summary="OpenHands' own agent, SDK and stock tools, acting on the sandbox; needs no Docker",
            factory="orchard_harness_openhands.harness:OpenHands",
            config="orchard_harness_openhands.config:OpenHandsConfig",
            capabilities="orchard_harness_openhands.harness:CAPABILITIES",
        )
    ]
