"""`orchard env top`: what a service is doing, as it goes on."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchard_env.cli.place import JsonFlag

if TYPE_CHECKING:
    from orchard_env.client.address import ServiceAddress
    from orchard_env.client.http import ServiceHttp
    from orchard_env.types.overview import Overview

_CALL_S = 15.0
_FETCHED = 200


def top(
    url: Annotated[
        str | None,
        typer.Option("--url", metavar="URL", help="The service; or SANDBOX_BASE_URL, or this machine."),
    ] = None,
    key_file: Annotated[
        Path | None,
        typer.Option(
            "--key-file", metavar="FILE", help="File with an administrator's key; or SANDBOX_API_KEY."
        ),
    ] = None,
    ca_file: Annotated[
        str | None,
        typer.Option(
            "--ca-file", metavar="FILE", help="PEM of who vouches for the service; or SANDBOX_CA_FILE."
        ),
    ] = None,
    every_s: Annotated[
        float,
        typer.Option("--every", min=0.2, max=3600, metavar="SECONDS", help="Seconds between two looks."),
    ] = 2.0,
    plain: Annotated[bool, typer.Option("--plain", help="Look once, and print lines.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Watch a service: sandboxes, tenants, rates, queues, failures and cost. Ctrl-C ends it.

    The key must have the scope admin. Behind several replicas each tells of what it made itself.
    """
    import asyncio

    from orchard_env.client.address import address_of

    address = address_of(url, None if key_file is None else _key(key_file), ca_file)
    if as_json or plain or not sys.stdout.isatty():
        asyncio.run(_once(address, as_json=as_json))
        return
    try:
        asyncio.run(_live(address, every_s))
    except KeyboardInterrupt:
        return  # the way to end it, and no fault


def _key(path: Path) -> str:
    from orchard_core import ConfigError

    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"the key file {path} cannot be read: {error}", hint="write the key alone into it"
        ) from error


async def _fetch(http: ServiceHttp, *, repeat: bool) -> Overview:
    from pydantic import ValidationError

    from orchard_core import SandboxError
    from orchard_env.types.overview import Overview

    told = await http.json("GET", "/v2/overview", params={"sandboxes": _FETCHED}, repeat=repeat)
    try:
        return Overview.model_validate(told)
    except ValidationError as error:
        raise SandboxError(
            f"what {http.address.url}/v2/overview tells is no overview: {error.error_count()} fields differ",
            hint="see that an orchard service runs there, of the same version as this command",
        ) from error


async def _once(address: ServiceAddress, *, as_json: bool) -> None:
    from orchard_env.client.http import ServiceHttp

    http = ServiceHttp(address, timeout_s=_CALL_S)
    try:
        view = await _fetch(http, repeat=True)
    finally:
        await http.close()
    if as_json:
        typer.echo(view.model_dump_json(indent=2))
        return
    from orchard_env.cli.top_view import print_view

    print_view(view, address.url)


async def _live(address: ServiceAddress, every_s: float) -> None:
    import asyncio

    from orchard_core import OrchardError
    from orchard_env.cli.top_view import live_screen
    from orchard_env.client.http import ServiceHttp

    http = ServiceHttp(address, timeout_s=_CALL_S)
    try:
        first = await _fetch(http, repeat=True)
        with live_screen(address.url) as screen:
            screen.show(first)
            while True:
                await asyncio.sleep(every_s)
                try:
                    screen.show(await _fetch(http, repeat=False))
                except (OrchardError, TimeoutError) as error:
                    screen.lost(str(error) or "it does not answer in time")
    finally:
        await http.close()
