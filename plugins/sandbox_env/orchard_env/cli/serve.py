"""`orchard serve`: any sandbox provider over HTTP."""

from __future__ import annotations

from typing import Annotated

import typer

_WHERE, _WHAT, _WHO = "Where", "What", "Who may"


def serve(  # noqa: PLR0913, PLR0917 - Typer makes one option of each parameter
    provider: Annotated[
        str,
        typer.Option(
            "--provider",
            metavar="NAME",
            help="local, process, container or kubernetes.",
            rich_help_panel=_WHAT,
        ),
    ] = "local",
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--provider-option",
            metavar="NAME=VALUE",
            help="An option of the provider. Repeatable.",
            rich_help_panel=_WHAT,
        ),
    ] = None,
    config: Annotated[
        str | None,
        typer.Option(
            "--config",
            metavar="FILE",
            help="YAML: `service:`, `provider:`, `team:`, `observe:`.",
            rich_help_panel=_WHAT,
        ),
    ] = None,
    image_fallback: Annotated[
        bool,
        typer.Option(
            "--image-fallback",
            help="Serve images that the provider has not from the host's own files.",
            rich_help_panel=_WHAT,
        ),
    ] = False,
    host: Annotated[
        str, typer.Option("--host", help="Address to listen on.", rich_help_panel=_WHERE)
    ] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option(
            "--port", help="Port; 0 takes any that is free.", min=0, max=65535, rich_help_panel=_WHERE
        ),
    ] = 8000,
    certificate: Annotated[
        str | None,
        typer.Option(
            "--tls-cert", metavar="FILE", help="PEM; the service then speaks HTTPS.", rich_help_panel=_WHERE
        ),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option("--tls-key", metavar="FILE", help="PEM key of the certificate.", rich_help_panel=_WHERE),
    ] = None,
    client_ca: Annotated[
        str | None,
        typer.Option(
            "--tls-client-ca",
            metavar="FILE",
            help="PEM; clients need a certificate that it vouches for.",
            rich_help_panel=_WHO,
        ),
    ] = None,
    keys: Annotated[
        str | None,
        typer.Option(
            "--keys", metavar="FILE", help="API keys; `orchard env keys` makes them.", rich_help_panel=_WHO
        ),
    ] = None,
    redis: Annotated[
        str | None,
        typer.Option(
            "--redis",
            metavar="URL",
            help="Several replicas share this Redis; without --keys the keys are in it, too.",
            rich_help_panel=_WHO,
        ),
    ] = None,
    redis_password_file: Annotated[
        str | None,
        typer.Option(
            "--redis-password-file", metavar="FILE", help="Its password alone.", rich_help_panel=_WHO
        ),
    ] = None,
    audit: Annotated[
        str | None,
        typer.Option(
            "--audit", metavar="FILE", help="Append who did what, as JSON lines.", rich_help_panel=_WHO
        ),
    ] = None,
    open_to_all: Annotated[
        bool, typer.Option("--no-auth", help="Serve other machines without keys.", rich_help_panel=_WHO)
    ] = False,
    log_level: Annotated[
        str,
        typer.Option(
            "--log-level", help="debug, info, warning or error; JSON lines on stderr.", rich_help_panel=_WHERE
        ),
    ] = "info",
    as_json: Annotated[bool, typer.Option("--json", help="Print the address as JSON.")] = False,
) -> None:
    """Serve sandboxes over HTTP until Ctrl-C or SIGTERM.

    Without --keys and --redis whoever reaches the address may do everything, so only this machine is served.
    """
    from orchard_env.service.launching import Launch, run

    run(
        Launch(
            provider=provider,
            options=tuple(option or ()),
            config=config,
            image_fallback=image_fallback,
            host=host,
            port=port,
            certificate=certificate,
            certificate_key=key,
            keys=keys,
            redis=redis,
            redis_password_file=redis_password_file,
            audit=audit,
            client_ca=client_ca,
            open_to_all=open_to_all,
            log_level=log_level,
            as_json=as_json,
        )
    )
