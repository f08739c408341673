"""Two harnesses that call a task's tools from outside Python: one by MCP, one by the command line."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, ImageContent, TextContent
from pydantic import JsonValue

from orchard_core import (
    Content,
    HarnessCapabilities,
    HarnessResult,
    Image,
    Limits,
    ModelEndpoint,
    OrchardError,
    Sandbox,
    Task,
    Text,
    Tool,
    ToolResult,
    ToolUse,
    install_tool_client,
    mcp_server,
)
from orchard_core.testing import FakeHarness


class RemoteTool:
    """A tool of the task as an MCP client sees it."""

    def __init__(self, client: Client, name: str, description: str, parameters: Mapping[str, JsonValue]):
        self._client = client
        self._remote = name
        self.name = f"mcp__orchard__{name}"
        self.description = description
        self.parameters = parameters

    async def call(self, args: Mapping[str, JsonValue]) -> ToolResult:
        return _result(await self._client.call_tool(self._remote, dict(args)))


class McpHarness(FakeHarness):
    """The fake harness, its tools taken from the MCP server alone."""

    name = "by-mcp"
    capabilities = HarnessCapabilities(tools=ToolUse.MCP)

    async def run(
        self, task: Task, sandbox: Sandbox, model: ModelEndpoint, tools: Sequence[Tool], limits: Limits
    ) -> HarnessResult:
        async with _connected(model) as client:
            offers = (await client.list_tools()).tools
            remote = [
                RemoteTool(client, offer.name, offer.description or "", offer.input_schema)
                for offer in offers
            ]
            try:
                return await super().run(task, sandbox, model, remote, limits)
            except OrchardError as error:  # the client's task group would wrap it
                failed = error
        raise failed


class CliHarness(FakeHarness):
    """The fake harness, which has nothing but a shell; the instruction says how to call the tools."""

    name = "by-cli"
    capabilities = HarnessCapabilities(tools=ToolUse.CLI)

    async def run(
        self, task: Task, sandbox: Sandbox, model: ModelEndpoint, tools: Sequence[Tool], limits: Limits
    ) -> HarnessResult:
        client = await install_tool_client(sandbox, await sandbox.expose_model(model), tools)
        told = task.model_copy(update={"instruction": f"{task.instruction}\n\n{client.instructions}"})
        return await super().run(told, sandbox, model, (), limits)


@asynccontextmanager
async def _connected(model: ModelEndpoint) -> AsyncIterator[Client]:
    server = mcp_server(model)
    async with (
        httpx2.AsyncClient(headers=dict(server.headers), timeout=60) as http,
        Client(streamable_http_client(server.url, http_client=http)) as client,
    ):
        yield client


def _result(result: CallToolResult) -> ToolResult:
    content: list[Content] = []
    for part in result.content:
        if isinstance(part, TextContent):
            content.append(Text(text=part.text))
        elif isinstance(part, ImageContent):
            content.append(Image(data=base64.b64decode(part.data), media_type=part.mime_type))
    return ToolResult(content=tuple(content), is_error=bool(result.is_error))
