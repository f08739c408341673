"""The system prompt: a Jinja2 template, sandboxed, ours or the user's."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from jinja2 import StrictUndefined, TemplateError, TemplateSyntaxError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from orchard_core import ConfigError, Limits, Task, Tool


class SystemPrompt:
    """Renders the system message. Raises ConfigError, when made, for a template that cannot be read."""

    def __init__(self, path: Path | None = None) -> None:
        self._where = str(path) if path else "system.md.j2"
        environment = ImmutableSandboxedEnvironment(
            undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=False
        )
        environment.filters["json"] = lambda value: json.dumps(value, ensure_ascii=False)
        try:
            self._template = environment.from_string(_source(path))
        except TemplateSyntaxError as error:
            raise ConfigError(
                f"{self._where}:{error.lineno}: {error.message}", hint="mend the system_template"
            ) from error

    def render(self, *, task: Task, tools: Sequence[Tool], protocol: str, limits: Limits) -> str:
        """The system message. Raises ConfigError when the template uses what there is not."""
        described = [
            {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
            for tool in tools
        ]
        try:
            return self._template.render(task=task, tools=described, protocol=protocol, limits=limits).strip()
        except TemplateError as error:
            raise ConfigError(
                f"{self._where}: {error}", hint="a template may use task, tools, protocol and limits"
            ) from error


def _source(path: Path | None) -> str:
    if path is None:
        return files("orchard_harness_react").joinpath("system.md.j2").read_text("utf-8")
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"cannot read the system_template {path}: {error}", hint="check the path"
        ) from error
