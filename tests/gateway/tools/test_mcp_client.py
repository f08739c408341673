"""The real MCP client, by the handshake and by the stateless revision."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import ImageContent, TextContent

from orchard_core import ModelEndpoint

from .conftest import PIXEL, Program


@asynccontextmanager
async def connected(endpoint: ModelEndpoint, mode: str) -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {endpoint.api_key}"}
    async with httpx2.AsyncClient(headers=headers, timeout=30) as http:
        transport = streamable_http_client(endpoint.tools_url, http_client=http)
        async with Client(transport, mode=mode) as client:
            yield client


every_way = pytest.mark.parametrize("mode", ["legacy", "auto", "2026-07-28"])
"""By handshake, by asking first, and by the stateless revision."""


@every_way
async def test_it_lists_the_tasks_tools(program: Program, mode: str) -> None:
    async with connected(program.endpoint, mode) as client:
        listed = await client.list_tools()
        assert [tool.name for tool in listed.tools] == ["echo", "shot", "wrong", "finish"]
        assert listed.tools[0].description == "Gives back its argument `words`."
        assert listed.tools[0].input_schema["properties"] == {"words": {"type": "string"}}


@every_way
async def test_it_calls_one_and_hears_its_words(program: Program, mode: str) -> None:
    async with connected(program.endpoint, mode) as client:
        result = await client.call_tool("echo", {"words": "naïve 🍏"})
        assert result.content == [TextContent(type="text", text="naïve 🍏")]
        assert result.is_error is False


@every_way
async def test_it_sees_a_picture(program: Program, mode: str) -> None:
    async with connected(program.endpoint, mode) as client:
        result = await client.call_tool("shot", {})
        picture = result.content[1]
        assert isinstance(picture, ImageContent)
        assert (picture.mime_type, base64.b64decode(picture.data)) == ("image/png", PIXEL)


@every_way
async def test_a_mistake_of_the_models_is_told_to_it(program: Program, mode: str) -> None:
    async with connected(program.endpoint, mode) as client:
        result = await client.call_tool("wrong", {})
        assert result.is_error is True
        assert result.content == [TextContent(type="text", text="no such page")]


@every_way
async def test_a_tool_that_is_none_names_those_that_are(program: Program, mode: str) -> None:
    async with connected(program.endpoint, mode) as client:
        with pytest.raises(MCPError, match=r"no tool 'sing'.*echo, shot"):
            await client.call_tool("sing", {})


@every_way
async def test_a_call_after_the_end_is_refused_in_words(program: Program, mode: str) -> None:
    async with connected(program.endpoint, mode) as client:
        assert (await client.call_tool("finish", {})).is_error is False
        late = await client.call_tool("echo", {"words": "more"})
        assert late.is_error is True
        assert late.content == [
            TextContent(type="text", text="the episode has ended: no further call is served")
        ]


@pytest.mark.filterwarnings("ignore:ping is removed")
async def test_a_client_may_ping_and_say_good_bye(program: Program) -> None:
    async with connected(program.endpoint, "legacy") as client:
        await client.send_ping()
        (name,) = program.session.tools.peers.names
    assert program.session.tools.peers.names == []
    assert (await program.rpc("ping", mcp_session_id=name)).status == 404
