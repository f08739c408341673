"""What this distribution offers; nothing heavy is imported here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchard_core import Descriptor, hookimpl

if TYPE_CHECKING:
    import typer


@hookimpl
def orchard_sandbox_providers() -> list[Descriptor]:
    """The provider `container`."""
    return [
        Descriptor(
            name="container",
            summary="Docker or Podman containers: any image, untouched, with the same agent inside",
            factory="orchard_sandbox_container.provider:ContainerProvider",
            config="orchard_sandbox_container.config:ContainerConfig",
        )
    ]


@hookimpl
def orchard_commands(app: typer.Typer) -> None:
    """`orchard containers`."""
    from orchard_sandbox_container.cli import app as containers

    app.add_typer(containers, name="containers", rich_help_panel="Look at what is there")
