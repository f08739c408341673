"""The `orchard` command."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from orchard_core import __version__
from orchard_core.cli import (
    check,
    demo,
    doctor,
    matrix,
    new,
    plugins,
    regrade,
    report,
    run,
    runs,
    samples,
    show,
    tasks,
    view,
    worker,
)
from orchard_core.cli.border import DEBUG_VARIABLE
from orchard_core.cli.data.app import app as data
from orchard_core.cli.group import OrchardGroup, SectionedCommand

app = typer.Typer(
    name="orchard",
    cls=OrchardGroup,
    help="Run agents on tasks in sandboxes, record every model call, score, compare.",
    epilog="Start with `orchard demo`, then `orchard run --help`. Exit codes: docs/reference/cli.md.",
    no_args_is_help=True,
    add_completion="_ORCHARD_COMPLETE" in os.environ,  # its options cost an import of pydantic
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_RUN, _LOOK, _DATA = "Run", "Look at results", "Make a training set"
_SETUP, _EXTEND = "Look at what is there", "Write a plugin"

app.command("demo", cls=SectionedCommand, rich_help_panel=_RUN)(demo.demo)
app.command("run", cls=SectionedCommand, rich_help_panel=_RUN)(run.run)
app.command("worker", cls=SectionedCommand, hidden=True)(worker.worker)
app.command("matrix", cls=SectionedCommand, rich_help_panel=_RUN)(matrix.matrix)
app.command("doctor", cls=SectionedCommand, rich_help_panel=_RUN)(doctor.doctor)
app.command("regrade", cls=SectionedCommand, rich_help_panel=_RUN)(regrade.regrade)
app.command("show", cls=SectionedCommand, rich_help_panel=_LOOK)(show.show)
app.command("samples", cls=SectionedCommand, rich_help_panel=_LOOK)(samples.samples)
app.command("report", cls=SectionedCommand, rich_help_panel=_LOOK)(report.report)
app.command("view", cls=SectionedCommand, rich_help_panel=_LOOK)(view.view)
app.add_typer(runs.app, name="runs", rich_help_panel=_LOOK)
app.add_typer(data, name="data", rich_help_panel=_DATA)
app.command("plugins", cls=SectionedCommand, rich_help_panel=_SETUP)(plugins.plugins)
app.add_typer(tasks.app, name="tasks", rich_help_panel=_SETUP)
app.command("new", cls=SectionedCommand, rich_help_panel=_EXTEND)(new.new)
app.command("check", cls=SectionedCommand, rich_help_panel=_EXTEND)(check.check)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"orchard {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
) -> None:
    if debug:
        os.environ[DEBUG_VARIABLE] = "1"


def main() -> None:
    """Entry point of the console script."""
    app(prog_name="orchard")


if __name__ == "__main__":
    main()
