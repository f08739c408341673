"""`orchard data`: the group; one file a command."""

from __future__ import annotations

import typer

app = typer.Typer(
    help="Mix runs into a dataset, look at it, check it, assign credit, import and export.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
