"""What differs between CLIs: one more is one more TOML file, and a function that reads its events."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from string import Template

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from orchard_core import ConfigError, FileInput, HarnessCapabilities, InsideProgram, NpmProgram, Told, ToolUse

Read = Callable[[Mapping[str, JsonValue], Told], None]
CLIS = Path(__file__).with_name("clis")


class Adapter(BaseModel):
    """One CLI. In `argv`, `env` and `files`, $name stands for a value, see the README."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    packages: tuple[str, ...]
    """npm packages, each `NAME@VERSION` exactly; the first is the CLI itself."""
    path: str
    """Its program below the installation: `{arch}` is x64 or arm64, `*` anything, the last match counts."""
    node: str = ""
    """What runs the program: empty: it is a binary; `node`: the host's; else a path as above."""
    events: str
    """`package.module:function`, which takes a JSON event of its output and writes into a Told."""
    tools: ToolUse = ToolUse.MCP
    """How it takes the task's tools."""
    images: bool = True
    """It shows the model pictures: from files, and from tools when these come by MCP."""
    calls_in_order: bool = True
    """It runs the calls of one answer one after another."""
    model_error: str = ""
    """What its last words hold when its model failed, for one that tells so in no event."""
    note: str = ""
    """For people, kept with its version in every record."""
    argv: tuple[str, ...]
    """Arguments; the instruction comes by standard input, and by `$instruction` for one that reads none."""
    turns_argv: tuple[str, ...] = ()
    """Arguments that limit its turns; empty: it cannot."""
    mcp_argv: tuple[str, ...] = ()
    """Arguments when the task brings tools."""
    env: Mapping[str, str] = {}
    """Variables."""
    files: Mapping[str, str] = {}
    """Files below its HOME: path to text."""
    mcp_files: Mapping[str, str] = {}
    """Likewise, when the task brings tools; added to a file of the same path."""

    @property
    def npm(self) -> NpmProgram:
        """Where it is from."""
        return NpmProgram(packages=self.packages, path=self.path, node=self.node)

    @property
    def instruction_in_argv(self) -> bool:
        """It reads no standard input."""
        return any("$instruction" in word for word in self.argv)

    @property
    def able(self) -> HarnessCapabilities:
        """What it can do."""
        return HarnessCapabilities(
            tools=self.tools,
            images=self.images,
            turn_limit=bool(self.turns_argv),
            calls_in_order=self.calls_in_order,
        )

    def program(self, values: Mapping[str, str], *, mcp: bool, turns: bool) -> InsideProgram:
        """What to run, the program's own path left out."""
        argv = (*self.argv, *(self.turns_argv if turns else ()), *(self.mcp_argv if mcp else ()))
        more = self.mcp_files if mcp else {}
        texts = {path: self.files.get(path, "") + more.get(path, "") for path in (*self.files, *more)}
        # Inside the quotes of JSON and TOML.
        quoted = {name: json.dumps(value)[1:-1] for name, value in values.items()}
        return InsideProgram(
            argv=tuple(Template(word).substitute(values) for word in argv),
            env={name: Template(text).substitute(values) for name, text in self.env.items()},
            files=tuple(_file(path, Template(text).substitute(quoted)) for path, text in texts.items()),
        )

    def reader(self) -> Read:
        """The function that reads its events. Raises ConfigError."""
        module, _, name = self.events.partition(":")
        try:
            read: Read = getattr(import_module(module), name)
        except (ImportError, AttributeError, ValueError) as error:
            raise ConfigError(f"{self.events} cannot be had: {error}", hint="install its package") from error
        return read


def find_adapter(cli: str) -> Adapter:
    """One of ours by name, or a TOML file by its path. Raises ConfigError."""
    path = Path(cli) if cli.endswith(".toml") else CLIS / f"{cli}.toml"
    try:
        return Adapter.model_validate(tomllib.loads(path.read_text()))
    except FileNotFoundError as error:
        known = ", ".join(sorted(each.stem for each in CLIS.glob("*.toml")))
        raise ConfigError(f"there is no CLI {cli!r}", hint=f"write {known}, or a TOML file's path") from error
    except (OSError, ValidationError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"the adapter {path} is wrong: {error}", hint="see orchard-harness-cli") from error


def _file(path: str, text: str) -> FileInput:
    """For its owner only: the session's key may stand in it."""
    return FileInput(path=path, content=text.encode(), mode=0o600)
