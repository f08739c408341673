"""What differs between CLIs: one more is one more Adapter."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from orchard_core import InsideProgram, Limits, ModelEndpoint, Told, ToolUse
from orchard_harness_cli.config import CliConfig

Json = Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """What an adapter knows when its program is to start."""

    model: ModelEndpoint
    """As it is reached from inside; its `tools_url` serves the task's tools."""
    tools: bool
    """The task brings tools."""
    home: str
    """The program's HOME."""
    limits: Limits
    """Of the rollout; only `turns` is the program's to keep."""
    config: CliConfig
    """The user's options."""

    @property
    def bearer(self) -> Mapping[str, str]:
        """Headers that the server of the tools wants."""
        return {"Authorization": f"Bearer {self.model.api_key}"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapter:
    """One CLI."""

    name: str
    """As in `cli:NAME`."""
    packages: tuple[str, ...]
    """npm packages, each `NAME@VERSION` exactly; the first is the CLI itself."""
    program: str
    """Its program below the installation: `{arch}` is x64 or arm64, `*` anything, the last match counts."""
    start: Callable[[Start], InsideProgram]
    """Arguments (in `argv`, the program left out), environment and files. The instruction comes by stdin."""
    read: Callable[[Json, Told], None]
    """Takes one JSON event of its output; `json_at` and `json_words` look into strange ones safely."""
    node: str = ""
    """What runs the program: empty: it is a binary; `node`: the host's; else a program as above."""
    tools: ToolUse = ToolUse.MCP
    """How it takes the task's tools."""
    turn_limit: bool = False
    """It can stop after a number of turns."""
    note: str = ""
    """For people, kept with its version in every record."""

    @property
    def version(self) -> str:
        """Such as `pi 0.73.1`."""
        return f"{self.name} {self.packages[0].rpartition('@')[2]}{self.note and ', '}{self.note}"
