"""One session with a few tools, and both ways to reach them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest
from pydantic import JsonValue

from orchard_core import Image, ModelEndpoint, Task, Text, Tool, ToolResult
from orchard_core.gateway.contract import SessionContext
from orchard_core.gateway.server import Gateway
from orchard_core.gateway.session import Session
from orchard_core.testing import FakeModel, FakeTool

PIXEL = b"\x89PNG not a real picture"


@dataclass(kw_only=True)
class Asked:
    """An HTTP answer, read."""

    status: int
    headers: Mapping[str, str]
    body: Any


class Program:
    """What speaks to the tools: raw HTTP with the session's key."""

    def __init__(self, http: aiohttp.ClientSession, session: Session) -> None:
        self._http = http
        self.session = session
        self.endpoint: ModelEndpoint = session.endpoint

    async def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        raw: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Asked:
        sent = {"Authorization": f"Bearer {self.endpoint.api_key}", **(headers or {})}
        content: dict[str, Any] = {"json": body} if raw is None and body is not None else {"data": raw}
        if raw is not None:
            sent.setdefault("Content-Type", "application/json")
        url = self.endpoint.root_url + path
        async with self._http.request(method, url, headers=sent, **content) as response:
            text = await response.read()
            value = await response.json() if text else None
            return Asked(
                status=response.status,
                headers={name.lower(): value for name, value in response.headers.items()},
                body=value,
            )

    async def rpc(self, method: str, params: object = None, *, number: object = 1, **headers: str) -> Asked:
        message: dict[str, object] = {"jsonrpc": "2.0", "id": number, "method": method}
        if params is not None:
            message["params"] = params
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.ask("POST", "/tools/mcp", message, headers=named)


class Slow(FakeTool):
    """Waits until it is let go, and tells when it begins and ends."""

    def __init__(self, name: str = "slow") -> None:
        super().__init__(name)
        self.begun, self.go, self.ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def call(self, args: Mapping[str, JsonValue]) -> ToolResult:
        self.calls.append(args)
        self.begun.set()
        try:
            await self.go.wait()
        finally:
            self.ended.set()
        return ToolResult.text("slept")


def task() -> Task:
    return Task(id="t", taskset="s", instruction="Use the tools.", digest="d")


def stock() -> list[Tool]:
    """A tool that echoes, one that shows a picture, one whose model erred, one that ends."""
    return [
        FakeTool(),
        FakeTool("shot", lambda args: ToolResult(content=(Text(text="seen"), Image(data=PIXEL)))),
        FakeTool("wrong", lambda args: ToolResult.text("no such page", is_error=True)),
        FakeTool("finish", lambda args: ToolResult(content=(Text(text="bye"),), ends=True, answer="42")),
    ]


@pytest.fixture
async def gateway() -> AsyncIterator[Gateway]:
    async with Gateway(max_body=1 << 20) as made:
        yield made


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as made:
        yield made


@pytest.fixture
def tools() -> list[Tool]:
    return stock()


@pytest.fixture
async def program(gateway: Gateway, http: aiohttp.ClientSession, tools: list[Tool]) -> AsyncIterator[Program]:
    context = SessionContext(rollout="r", task=task(), solution=lambda: None)
    session = await gateway.open_session(FakeModel(), context, tools=tools)
    yield Program(http, session)
    await session.close()
