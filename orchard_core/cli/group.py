"""The root command: sections in its help, commands of plugins, and the error border around each command."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group

from orchard_core.cli.border import error_border
from orchard_core.cli.output import err
from orchard_core.evals.clean import clean_line


class _CheapHelp:
    """Gives `--help` the value False when it is absent. With None, Typer asks pydantic to convert it, and
    importing pydantic takes longer than all the rest of `orchard plugins`."""

    def get_help_option(self, ctx: Any) -> Any:
        """The option, its default set."""
        option = super().get_help_option(ctx)  # type: ignore[misc] # the base is Typer's class beside it
        if option is not None:
            option.default = False
        return option


class OrchardGroup(_CheapHelp, TyperGroup):
    """Commands by section. Plugins are loaded only when their commands could matter: for the list of
    commands and for a name that is not built in."""

    _asked_plugins = False

    def main(self, *args: Any, **extra: Any) -> Any:
        """Everything, parsing and help included, inside the error border."""
        with error_border():
            return super().main(*args, **extra)

    def invoke(self, ctx: Any) -> Any:
        """The command inside a border of its own, before Typer's handling of a broken pipe."""
        with error_border():
            return super().invoke(ctx)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A built-in command, else one that a plugin adds."""
        if cmd_name not in self.commands:
            self._add_plugin_commands()
        return super().get_command(ctx, cmd_name)

    def list_commands(self, ctx: Any) -> list[str]:
        """In the order they were added."""
        self._add_plugin_commands()
        return list(self.commands)

    def _add_plugin_commands(self) -> None:
        if self._asked_plugins:
            return
        self._asked_plugins = True
        from orchard_core.plugins.manager import installed

        app = typer.Typer(rich_markup_mode=None)
        for broken in installed().add_commands(app):
            err(f"left out: {clean_line(broken.error.message, 500)}", fg="yellow")
        for name, command in get_group(app).commands.items():
            self.commands.setdefault(name, command)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """One section for each help panel."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        shown = [(name, command) for name, command in commands if command and not command.hidden]
        width = formatter.width - 6 - max((len(name) for name, _ in shown), default=0)
        sections: dict[str, list[tuple[str, str]]] = {}
        for name, command in shown:
            panel = getattr(command, "rich_help_panel", None) or "Commands"
            sections.setdefault(str(panel), []).append((name, command.get_short_help_str(width)))
        for title, rows in sections.items():
            with formatter.section(title):
                formatter.write_dl(rows)


class SectionedCommand(_CheapHelp, TyperCommand):
    """A command whose options stand in the sections that their help panels name."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Arguments and options, a section for each panel."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is None:
                continue
            panel = getattr(param, "rich_help_panel", None)
            default = "Arguments" if param.param_type_name == "argument" else "Options"
            sections.setdefault(str(panel or default), []).append(record)
        for title, rows in sections.items():
            with formatter.section(title):
                formatter.write_dl(rows)
