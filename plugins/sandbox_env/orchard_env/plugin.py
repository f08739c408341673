"""What this distribution offers; nothing heavy is imported here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchard_core import Descriptor, hookimpl

if TYPE_CHECKING:
    import typer


@hookimpl
def orchard_sandbox_providers() -> list[Descriptor]:
    """The providers `kubernetes` and `remote`."""
    return [
        Descriptor(
            name="kubernetes",
            summary="pods of a Kubernetes cluster, spoken to at their own addresses",
            factory="orchard_env.kubernetes.provider:open_kubernetes",
            config="orchard_env.kubernetes.config:KubernetesConfig",
            requires=("kubernetes",),
            extra="orchard-env[kubernetes]",
        ),
        Descriptor(
            name="remote",
            summary="sandboxes of an Orchard Env service, such as remote:http://HOST:8000",
            factory="orchard_env.remote.provider:RemoteProvider",
            config="orchard_env.remote.config:RemoteConfig",
            argument="url",
        ),
    ]


@hookimpl
def orchard_workforces() -> list[Descriptor]:
    """The workforce `kubernetes`."""
    return [
        Descriptor(
            name="kubernetes",
            summary="workers of a shared run as Jobs of a Kubernetes cluster",
            factory="orchard_env.kubernetes.workforce.workforce:open_workforce",
            config="orchard_env.kubernetes.workforce.config:WorkforceConfig",
            argument="image",
            requires=("kubernetes",),
            extra="orchard-env[kubernetes]",
        )
    ]


@hookimpl
def orchard_commands(app: typer.Typer) -> None:
    """`orchard serve` and `orchard env`."""
    from orchard_env.cli.app import app as env
    from orchard_env.cli.serve import serve

    app.command("serve", rich_help_panel="Serve sandboxes")(serve)
    app.add_typer(env, name="env", rich_help_panel="Serve sandboxes")
