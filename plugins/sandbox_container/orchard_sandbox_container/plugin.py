"""What this distribution offers; nothing heavy is imported here."""

from __future__ import annotations

from orchard_core import Descriptor, hookimpl


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
