"""What this distribution offers; nothing heavy is imported here."""

from __future__ import annotations

from orchard_core import Descriptor, hookimpl


@hookimpl
def orchard_harnesses() -> list[Descriptor]:
    """The harnesses `cli:NAME`."""
    return [
        Descriptor(
            name="cli",
            summary="A coding CLI inside the sandbox: cli:codex, cli:claude, cli:opencode, cli:pi; and "
            "cli:kimi, for evaluation only",
            factory="orchard_harness_cli.harness:Cli",
            config="orchard_harness_cli.config:CliConfig",
            argument="cli",
        )
    ]
