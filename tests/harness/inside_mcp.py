"""An MCP client that runs inside the sandbox, where the tunnel is its only way out."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import JsonValue

from orchard_core import (
    HarnessCapabilities,
    HarnessResult,
    Limits,
    McpServer,
    ModelEndpoint,
    Sandbox,
    Task,
    Tool,
    ToolResult,
    ToolUse,
    mcp_server,
)
from orchard_core.testing import FakeHarness

CLIENT = """
import json, sys, urllib.request

url, key, version, message = sys.argv[1:]
headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
           "Authorization": key, "MCP-Protocol-Version": version}
request = urllib.request.Request(url, message.encode(), headers)
sys.stdout.write(urllib.request.urlopen(request).read().decode())
"""
VERSION = "2025-11-25"


class InsideTool:
    """One of the task's tools, called by a program inside."""

    def __init__(self, client: InsideClient, offer: Mapping[str, JsonValue]) -> None:
        self._client = client
        self._remote = str(offer["name"])
        self.name = f"mcp__orchard__{self._remote}"
        self.description = str(offer["description"])
        schema = offer["inputSchema"]
        self.parameters: Mapping[str, JsonValue] = schema if isinstance(schema, dict) else {}

    async def call(self, args: Mapping[str, JsonValue]) -> ToolResult:
        said = await self._client.ask("tools/call", {"name": self._remote, "arguments": dict(args)})
        text = "\n".join(part["text"] for part in said["content"] if part["type"] == "text")
        return ToolResult.text(text, is_error=said["isError"])


class InsideClient:
    """Speaks MCP by a Python program inside."""

    def __init__(self, sandbox: Sandbox, server: McpServer) -> None:
        self._sandbox = sandbox
        self._server = server

    async def ask(self, method: str, params: Mapping[str, JsonValue]) -> Mapping[str, Any]:
        message = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": dict(params)})
        key = self._server.headers["Authorization"]
        done = await self._sandbox.exec(["python3", "-c", CLIENT, self._server.url, key, VERSION, message])
        assert done.ok, done.text
        result: Mapping[str, Any] = json.loads(done.stdout)["result"]
        return result


class InsideMcpHarness(FakeHarness):
    """The fake harness, its tools reached from inside."""

    name = "by-mcp-inside"
    capabilities = HarnessCapabilities(tools=ToolUse.MCP)

    async def run(
        self, task: Task, sandbox: Sandbox, model: ModelEndpoint, tools: Sequence[Tool], limits: Limits
    ) -> HarnessResult:
        client = InsideClient(sandbox, mcp_server(await sandbox.expose_model(model)))
        await client.ask("initialize", {"protocolVersion": VERSION, "capabilities": {}})
        offers = (await client.ask("tools/list", {}))["tools"]
        inside = [InsideTool(client, offer) for offer in offers]
        return await super().run(task, sandbox, model, inside, limits)
