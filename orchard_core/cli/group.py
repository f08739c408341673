"""The root command: sections in its help, commands of plugins, and the error border around each command."""

from __future__ import annotations

import re
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group

from orchard_core.cli.border import error_border
from orchard_core.cli.output import err
from orchard_core.evals.clean import clean_line

_TYPE = re.compile(r" <(?:list\[)?([\w|]+)(?: range)?\]?>")
_WORDS = {"str": "TEXT", "int": "NUMBER", "float": "NUMBER"}


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
        sections: dict[str, list[tuple[str, Any]]] = {}
        for name, command in shown:
            panel = getattr(command, "rich_help_panel", None) or "Commands"
            sections.setdefault(str(panel), []).append((name, command))
        for title, rows in sections.items():
            width = formatter.width - 6 - max(len(name) for name, _ in rows)
            with formatter.section(title):
                formatter.write_dl([(name, command.get_short_help_str(width)) for name, command in rows])


class SectionedCommand(_CheapHelp, TyperCommand):
    """A command whose options stand in the sections that their help panels name."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """What is needed stands bare, `RUN`; Typer would write `{RUN}`."""
        return [piece.replace("{", "").replace("}", "") for piece in super().collect_usage_pieces(ctx)]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """The arguments; what is wrong with them is told without pydantic's words."""
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            if _says_value_error(error):
                error.message = error.message.replace("Value error, ", "")  # type: ignore[attr-defined]
            raise

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Arguments and options, a section for each panel."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is None:
                continue
            panel = getattr(param, "rich_help_panel", None)
            default = "Arguments" if param.param_type_name == "argument" else "Options"
            sections.setdefault(str(panel or default), []).append((_in_words(param, record[0]), record[1]))
        for title, rows in sections.items():
            with formatter.section(title):
                formatter.write_dl(rows)


def _in_words(param: Any, name: str) -> str:
    """`--limit NUMBER` instead of `--limit <int>`; an argument's name says what it is."""
    argument = param.param_type_name == "argument"
    return _TYPE.sub("" if argument else lambda found: f" {_WORDS.get(found[1], found[1].upper())}", name)


def _says_value_error(error: Exception) -> bool:
    return "Value error, " in str(getattr(error, "message", ""))
