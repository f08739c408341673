"""`orchard data`: the group; one file a command."""

from __future__ import annotations

import typer

from orchard_core.cli.data import credit, export, import_, mix, stats, verify
from orchard_core.cli.group import SectionedCommand

app = typer.Typer(
    help="Mix runs into a dataset, look at it, check it, assign credit, import and export.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

app.command("mix", cls=SectionedCommand)(mix.mix)
app.command("stats", cls=SectionedCommand)(stats.stats)
app.command("verify", cls=SectionedCommand)(verify.verify)
app.command("credit", cls=SectionedCommand)(credit.credit)
app.command("export", cls=SectionedCommand)(export.export)
app.command("import", cls=SectionedCommand)(import_.import_)
