"""What this distribution offers; nothing heavy is imported here."""

from __future__ import annotations

from orchard_core import Descriptor, hookimpl


@hookimpl
def orchard_harnesses() -> list[Descriptor]:
    """The harness `zeroclaw`."""
    return [
        Descriptor(
            name="zeroclaw",
            summary="The ZeroClaw agent runtime, its own binary inside the sandbox",
            factory="orchard_harness_zeroclaw.harness:ZeroClaw",
            config="orchard_harness_zeroclaw.config:ZeroClawConfig",
            capabilities="orchard_harness_zeroclaw.harness:CAPABILITIES",
        )
    ]
