"""`orchard env`: the group; one file a command."""

from __future__ import annotations

import typer

from orchard_env.cli import keys, tenants

app = typer.Typer(
    help="Run the sandbox service: its keys and tenants.", no_args_is_help=True, rich_markup_mode=None
)
app.add_typer(keys.app, name="keys")
app.add_typer(tenants.app, name="tenants")
