"""Giving a task's tools to a program inside: as an MCP server, or as a command where it has only a shell."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from orchard_core.errors import ExecError
from orchard_core.sandbox.agent import agent_binary
from orchard_core.sandbox.contract import Sandbox
from orchard_core.tasks.contract import Tool
from orchard_core.types.model import ModelEndpoint

COMMAND = "orchard-tool"
"""What the client is called inside."""

_AGENT_INSIDE = "/.orchard-agent"
"""Where providers that show the agent inside put it; it is the client too."""
_VERSION = b"1\n"
"""What `tool version` prints; an agent of another one is not used."""
_RESERVED = frozenset({"list", "help", "call", "version"})


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServer:
    """Where an MCP client finds the task's tools."""

    url: str
    """Streamable HTTP."""
    headers: Mapping[str, str]
    """To be sent with every request."""


def mcp_server(model: ModelEndpoint) -> McpServer:
    """The tools' MCP server, seen from where `model` is seen: inside, give what `expose_model` gave."""
    return McpServer(url=model.tools_url, headers={"Authorization": f"Bearer {model.api_key}"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolClient:
    """A command inside that calls the task's tools."""

    path: str
    """The command, absolute: agents' shells often reset PATH, and hide variables that look like keys."""
    env: Mapping[str, str]
    """For a harness that would rather run `AGENT tool` itself; the command carries them already."""
    instructions: str
    """Markdown for the end of the task's instruction: each tool, its command and its schema. Empty when the
    task brings no tools."""


async def install_tool_client(sandbox: Sandbox, model: ModelEndpoint, tools: Sequence[Tool]) -> ToolClient:
    """Put the client into the sandbox. `model` is the endpoint as seen from inside (`expose_model`).

    Needs a shell inside, as whatever calls it does. Raises SandboxError.
    """
    env = {"ORCHARD_TOOLS_URL": f"{model.root_url}/tools", "ORCHARD_TOOLS_KEY": model.api_key}
    folder, path = _folder(sandbox), client_path(sandbox)
    if tools:
        program = await _program(sandbox, folder)
        settings = " ".join(f"{name}={shlex.quote(value)}" for name, value in env.items())
        script = f'#!/bin/sh\n{settings} exec {program} tool "$@"\n'
        await sandbox.write(path, script.encode(), mode=0o700)
    return ToolClient(path=path, env=env, instructions=_instructions(path, tools))


def client_path(sandbox: Sandbox) -> str:
    """Where `install_tool_client` puts the command."""
    return f"{_folder(sandbox)}/{COMMAND}"


def _folder(sandbox: Sandbox) -> str:
    """The same path in every rollout, for it stands in prompts; one of its own where paths are shared."""
    return "/tmp/orchard" if sandbox.capabilities.private_paths else f"/tmp/orchard-{sandbox.id}"  # noqa: S108


async def _program(sandbox: Sandbox, folder: str) -> str:
    """An agent that is inside already, else one that is written beside the command, as a shell word."""
    shown = _AGENT_INSIDE if sandbox.capabilities.private_paths else str(agent_binary())
    if await _is_client(sandbox, shown):
        return shlex.quote(shown)
    machine = (await sandbox.exec("uname -m", timeout=10)).text.strip()
    await sandbox.write(f"{folder}/agent", agent_binary(machine or None).read_bytes(), mode=0o755)
    return '"${0%/*}/agent"'


async def _is_client(sandbox: Sandbox, program: str) -> bool:
    try:
        told = await sandbox.exec([program, "tool", "version"], timeout=10)
    except ExecError:
        return False
    return told.ok and told.stdout == _VERSION


def _instructions(path: str, tools: Sequence[Tool]) -> str:
    if not tools:
        return ""
    offers = "\n\n".join(_offer(path, tool) for tool in tools)
    return f"""## Tools of this task

Beside your own tools you have the ones below. Call each in the shell, with its arguments as one JSON object
or as `--key value` pairs; `-` reads the JSON from standard input. Text is printed; a picture is saved to a
file whose path is printed; a failed call prints why to standard error and exits with 1.

{offers}
"""


def _offer(path: str, tool: Tool) -> str:
    command = f"{path} call {tool.name}" if tool.name in _RESERVED else f"{path} {tool.name}"
    schema = json.dumps(tool.parameters, ensure_ascii=False)
    return f"""### {tool.name}

{tool.description.strip()}

```sh
{command} 'ARGUMENTS'
```

ARGUMENTS is a JSON object of this schema:

```json
{schema}
```"""
