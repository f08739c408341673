"""`orchard env manifests`: the service's objects for `kubectl apply`."""

from __future__ import annotations

from typing import Annotated

import typer

_CLAIM = r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?"
_NAME = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"


def manifests(
    namespace: Annotated[
        str, typer.Option("--namespace", metavar="NAME", help="Where the service is.")
    ] = "orchard-env",
    sandboxes: Annotated[
        str, typer.Option("--sandboxes", metavar="NAME", help="The namespace of sandboxes; one of their own.")
    ] = "orchard-sandboxes",
    image: Annotated[
        str | None, typer.Option("--image", metavar="IMAGE", help="The orchestrator's image.")
    ] = None,
    injector: Annotated[
        str | None, typer.Option("--injector", metavar="IMAGE", help="The image with the agent.")
    ] = None,
    snapshots: Annotated[
        str | None,
        typer.Option("--snapshots", metavar="CLAIM", help="A PersistentVolumeClaim, to keep snapshots on."),
    ] = None,
) -> None:
    """Print what the Helm chart makes, without Helm, for `kubectl apply -f -`.

    They hold no secrets; the comment at the top says how to make those.
    """
    import re

    from orchard_core import ConfigError
    from orchard_env.rendered import Choices
    from orchard_env.rendered import manifests as rendered

    for name in (namespace, sandboxes):
        if not re.fullmatch(_NAME, name):
            raise ConfigError(f"{name!r} cannot name a namespace", hint="use at most 63 of a-z, 0-9 and -")
    if namespace == sandboxes:
        raise ConfigError(
            f"the service and sandboxes are both to be in {namespace}",
            hint="give sandboxes a namespace of their own: who makes pods in one may mount its Secrets",
        )
    if snapshots is not None and not re.fullmatch(_CLAIM, snapshots):
        raise ConfigError(
            f"{snapshots!r} cannot name a PersistentVolumeClaim",
            hint="give its name in the service's namespace",
        )
    told = Choices(
        namespace=namespace, sandboxes=sandboxes, image=image, injector=injector, snapshots=snapshots
    )
    typer.echo(rendered(told), nl=False)
