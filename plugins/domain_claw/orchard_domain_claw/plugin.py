"""What this distribution offers."""

from __future__ import annotations

from orchard_core import Descriptor, hookimpl


@hookimpl
def orchard_tasksets() -> list[Descriptor]:
    """The tasks of the PyPI package claw-bench."""
    return [
        Descriptor(
            name="claw-bench",
            summary="222 personal-assistant tasks with their own verifiers, such as claw-bench:email,L2",
            factory="orchard_domain_claw.taskset:ClawBench",
            config="orchard_domain_claw.config:ClawBenchConfig",
            argument="select",
            requires=("claw_bench", "pytest", "yaml"),
            extra="orchard-domain-claw[bench]",
        )
    ]
