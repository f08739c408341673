"""`orchard view`: runs, matrices and datasets in a browser on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from orchard_core.viewer.sources.shelf import Shelf
    from orchard_core.viewer.vocabulary import Vocabulary

_REMOTE = "--allow-remote-I-know"


def view(
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="PATH", help="Runs, matrices and datasets.", show_default=False),
    ],
    port: Annotated[int, typer.Option(help="0: any that is free.", min=0, max=65535)] = 0,
    host: Annotated[str, typer.Option(help="Address to listen at.")] = "127.0.0.1",
    allow_remote: Annotated[
        bool,
        typer.Option(
            _REMOTE,
            help="Listen where other machines can reach it: the link and all pages then travel unencrypted.",
        ),
    ] = False,
    no_open: Annotated[bool, typer.Option("--no-open", help="Print the link and open no browser.")] = False,
    no_index: Annotated[
        bool, typer.Option("--no-index", help="Make no index of the messages; search finds tasks and errors.")
    ] = False,
    tokenizer: Annotated[
        Path | None,
        typer.Option(
            help="The model's tokenizer.json, or its directory: tokens are then shown as text.",
            show_default=False,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the link as JSON.")] = False,
) -> None:
    """Read runs, matrices and datasets in a browser, turn by turn.

    Prints a link that lets one browser in. Listens on this machine alone; Ctrl-C ends it. A run that is going
    on is followed.
    """
    from orchard_core.errors import ConfigError

    _check_host(host, allow_remote=allow_remote)
    try:
        import fastapi  # noqa: F401 - the extra
    except ImportError:
        raise ConfigError("orchard view needs FastAPI", hint="pip install 'orchard-core[view]'") from None
    from orchard_core.viewer.sources.shelf import Shelf
    from orchard_core.viewer.vocabulary import Vocabulary

    vocabulary = Vocabulary.open(tokenizer) if tokenizer is not None else None
    _serve(
        Shelf.open(paths), host=host, port=port, index=not no_index, vocabulary=vocabulary, opens=not no_open,
        as_json=as_json,
    )  # fmt: skip


def _check_host(host: str, *, allow_remote: bool) -> None:
    import ipaddress

    try:
        loopback = ipaddress.ip_address(host).is_loopback
    except ValueError:
        raise typer.BadParameter("is no IP address, such as 127.0.0.1", param_hint="--host") from None
    if not loopback and not allow_remote:
        raise typer.BadParameter(
            f"{host} can be reached from other machines, and everything travels unencrypted; better an SSH"
            f" tunnel to 127.0.0.1. If you know that: {_REMOTE}",
            param_hint="--host",
        )


def _serve(
    shelf: Shelf,
    *,
    host: str,
    port: int,
    index: bool,
    vocabulary: Vocabulary | None,
    opens: bool,
    as_json: bool,
) -> None:
    import asyncio
    import signal

    from orchard_core.cli.output import err
    from orchard_core.viewer.serve import serving

    for source in shelf.sources:
        source.lines()  # what is wrong is said here, and the first page is as quick as the next

    async def main() -> None:
        stopped = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, stopped.set)
        async with serving(
            shelf, host=host, port=port, index=index, vocabulary=vocabulary, link_used=_another
        ) as door:
            _print(door.link, len(shelf.sources), as_json=as_json)
            if opens:
                _open(door.link)
            await stopped.wait()
        err("the viewer has ended")

    asyncio.run(main())


def _another(link: str) -> None:
    from orchard_core.cli.output import err

    err(f"for another browser: {link}")


def _print(link: str, count: int, *, as_json: bool) -> None:
    import sys

    from orchard_core.cli.output import err, out, print_json

    if as_json:
        print_json({"url": link, "sources": count})
    else:
        out(link)
        err("the link lets one browser in; Ctrl-C ends the viewer")
    sys.stdout.flush()


def _open(link: str) -> None:
    import threading
    import webbrowser

    threading.Thread(target=webbrowser.open, args=(link,), daemon=True).start()
