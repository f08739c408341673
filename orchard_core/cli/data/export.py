"""`orchard data export`: rows written as files of another project's format."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Where = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=VALUE",
        help="Only rows whose harness, model, taskset, task, outcome, split, source, label or tag is this; "
        "of one name given twice, either. Repeatable.",
    ),
]
Option = Annotated[
    list[str] | None,
    typer.Option("--option", metavar="NAME=VALUE", help="An option of the format's own. Repeatable."),
]
Limit = Annotated[int | None, typer.Option(min=1, help="At most so many rows.", show_default=False)]
Plain = Annotated[bool, typer.Option("--plain", help="Lines instead of a live display.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print a summary as JSON.")]
Threads = Annotated[
    str, typer.Option(metavar="LABELS", help="Of runs: which conversations, out of main, fork and side.")
]


def export(
    path: Annotated[
        Path,
        typer.Argument(metavar="PATH", help="A run, a matrix, a dataset or a file.", show_default=False),
    ],
    out: Annotated[
        Path, typer.Option(help="The file or directory to write; it must not exist.", show_default=False)
    ],
    format: Annotated[  # noqa: A002 - what users write
        str, typer.Option(help="What to write, such as hf, hf:turns, atif or orchard-swe.")
    ] = "hf",
    option: Option = None,
    source_format: Annotated[
        str | None, typer.Option(help="What PATH is, where it is not recognised.", show_default=False)
    ] = None,
    where: Where = None,
    min_reward: Annotated[
        float | None, typer.Option(help="Only rows with at least this reward.", show_default=False)
    ] = None,
    limit: Limit = None,
    threads: Threads = "main,fork",
    plain: Plain = False,
    as_json: AsJson = False,
) -> None:
    """Write rows as files of another project's format.

    The files appear whole or not at all, and nothing is overwritten: after Ctrl-C or a crash, give the same
    command again. What a format cannot hold is refused, naming the row.
    """
    from orchard_core.cli.data.chosen import Chosen
    from orchard_core.cli.data.moving import export_rows

    chosen = Chosen.of(where or (), min_reward=min_reward, limit=limit, threads=threads)
    export_rows(
        path, out, format=format, options=option or (), source_format=source_format, chosen=chosen,
        plain=plain, as_json=as_json,
    )  # fmt: skip
