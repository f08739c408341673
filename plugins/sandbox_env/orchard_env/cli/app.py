"""`orchard env`: the group; one file a command."""

from __future__ import annotations

import typer

from orchard_env.cli import keys, tenants
from orchard_env.cli.cost import cost
from orchard_env.cli.manifests import manifests
from orchard_env.cli.top import top

app = typer.Typer(
    help="Run the sandbox service: its keys, tenants, load and cost.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(keys.app, name="keys")
app.add_typer(tenants.app, name="tenants")
app.command("cost")(cost)
app.command("top")(top)
app.command("manifests")(manifests)
