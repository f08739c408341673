"""`orchard data import`: files of another project's format made into a dataset."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from orchard_core.cli.data.export import AsJson, Limit, Option, Plain, Where


def import_(
    path: Annotated[
        Path,
        typer.Argument(metavar="PATH", help="A file or directory of a known format.", show_default=False),
    ],
    out: Annotated[Path, typer.Option(help="The dataset's directory.", show_default=False)],
    format: Annotated[  # noqa: A002 - what users write
        str | None, typer.Option(help="What PATH is, where it is not recognised.", show_default=False)
    ] = None,
    option: Option = None,
    split: Annotated[
        str | None, typer.Option(help="The split of rows whose files name none.", show_default=False)
    ] = None,
    where: Where = None,
    limit: Limit = None,
    plain: Plain = False,
    as_json: AsJson = False,
) -> None:
    """Make a dataset of files of another project's format.

    Shards that are whole survive Ctrl-C and crashes: the same command goes on after them. A row that cannot
    be read ends it, naming file, row and field.
    """
    from orchard_core.cli.data.chosen import Chosen
    from orchard_core.cli.data.moving import import_rows

    chosen = Chosen.of(where or (), min_reward=None, limit=limit, threads="main,fork,side")
    import_rows(
        path,
        out,
        format=format,
        options=option or (),
        split=split,
        chosen=chosen,
        plain=plain,
        as_json=as_json,
    )
