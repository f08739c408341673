"""Options of the `claw-bench` task set."""

from __future__ import annotations

from typing import Literal

from orchard_core import Record


class ClawBenchConfig(Record):
    """`claw-bench`, or `claw-bench:SELECT`."""

    select: str = ""
    """Which tasks: terms separated by commas, each a domain (`email`), a level (`L2`), an id (`eml-001`), a
    pattern (`eml-*`) or a number. Domains add up, so do ids and patterns; levels then narrow the choice; a
    number takes that many, dealt out over the domains in turn. Nothing: all tasks."""
    python: Literal["mount", "image"] = "mount"
    """Where pytest and PyYAML come from inside: `mount` shows this environment's own copies read-only,
    which needs a provider on this machine; `image` takes those of the sandbox's image."""
    image: str = "host"
    """The sandbox's image: `host`, `rootfs:PATH` or `oci:REFERENCE`, with bash and Python 3.10 or newer."""
