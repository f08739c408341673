"""The harness's own tools as a model sees them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from orchard_core import ToolSpec
from orchard_harness_react.config import OwnTool, ReactConfig

_PATH: Mapping[str, JsonValue] = {
    "type": "string",
    "description": "absolute, or relative to the working directory",
}


def own_spec(name: OwnTool, config: ReactConfig, workdir: str) -> ToolSpec:
    """Name, description and arguments of one tool."""
    match name:
        case "bash":
            return _bash(config, workdir)
        case "read_file":
            return _READ_FILE
        case "write_file":
            return _WRITE_FILE
        case "edit_file":
            return _EDIT_FILE
        case "submit":
            return _SUBMIT


def _spec(
    name: OwnTool, description: str, required: Sequence[str], **arguments: Mapping[str, JsonValue]
) -> ToolSpec:
    return ToolSpec(
        name=name,
        description=description,
        parameters={
            "type": "object",
            "properties": {name: dict(schema) for name, schema in arguments.items()},
            "required": list(required),
            "additionalProperties": False,
        },
    )


def _bash(config: ReactConfig, workdir: str) -> ToolSpec:
    limit = f"default {config.bash_timeout_s:g} s, at most {config.bash_timeout_max_s:g} s"
    return _spec(
        "bash",
        f"Run a shell command. Every command runs in a new shell that starts in {workdir}: files stay, but "
        "`cd`, variables and aliases do not. There is no terminal and no standard input. A process left in "
        f"the background with `&` keeps running. A command that runs past timeout_s ({limit}) is killed.",
        ["command"],
        command={"type": "string", "description": "the command, or a script of several lines"},
        timeout_s={"type": "number", "description": "limit in seconds"},
    )


_READ_FILE = _spec(
    "read_file",
    "Show a text file. A long one is cut to its head and tail: ask for lines to see the rest.",
    ["path"],
    path=_PATH,
    first_line={"type": "integer", "minimum": 1, "description": "start here, counted from 1"},
    lines={"type": "integer", "minimum": 1, "description": "how many lines"},
)
_WRITE_FILE = _spec(
    "write_file",
    "Write a whole file, making its directories. An existing file is replaced.",
    ["path", "content"],
    path=_PATH,
    content={"type": "string", "description": "everything the file shall hold"},
)
_EDIT_FILE = _spec(
    "edit_file",
    "Replace a piece of a file. `old` must be exactly as in the file, blanks included, and occur once, "
    "unless `all` is true.",
    ["path", "old", "new"],
    path=_PATH,
    old={"type": "string", "minLength": 1, "description": "what to replace"},
    new={"type": "string", "description": "what to put there"},
    all={"type": "boolean", "description": "replace every occurrence"},
)
_SUBMIT = _spec(
    "submit",
    "End the task. Call it once, when everything is done and checked.",
    [],
    answer={"type": "string", "description": "the final answer, if the task asks for one"},
)
