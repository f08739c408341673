"""`orchard data`: the group; one file a command."""

from __future__ import annotations

from collections.abc import Callable

import typer

from orchard_core.cli.data import credit, export, import_, mix, stats, verify
from orchard_core.cli.group import SectionedCommand

app = typer.Typer(
    help="Mix runs into datasets; count, verify, credit, import, export.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


def _add(name: str, command: Callable[..., None], in_short: str) -> None:
    app.command(name, cls=SectionedCommand, short_help=in_short)(command)


_add("mix", mix.mix, "Mix sources into one dataset, filtered and split by task.")
_add("stats", stats.stats, "Count rows, tasks, turns and tokens, and what is trained.")
_add("verify", verify.verify, "Check a dataset, and list everything that is wrong.")
_add("credit", credit.credit, "Assign credit to the answers of unresolved rollouts.")
_add("export", export.export, "Write rows as files of another project's format.")
_add("import", import_.import_, "Make a dataset of files of another project's format.")
