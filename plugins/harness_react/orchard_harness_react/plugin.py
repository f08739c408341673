"""What this distribution offers; nothing heavy is imported here."""

from __future__ import annotations

from orchard_core import Descriptor, hookimpl


@hookimpl
def orchard_harnesses() -> list[Descriptor]:
    """The harness `react`."""
    return [
        Descriptor(
            name="react",
            summary="Generic ReAct loop over the task's tools plus bash and files; text and images",
            factory="orchard_harness_react.harness:React",
            config="orchard_harness_react.config:ReactConfig",
            argument="protocol",
            capabilities="orchard_harness_react.harness:CAPABILITIES",
        )
    ]
