"""Terminals of v1: what is typed, shown, told, and ended when the client leaves."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import httpx
import pytest

from .running import GENEROUS_S, Running


@asynccontextmanager
async def terminal(
    service: Running, sandbox: str, query: str = "", **init: Any
) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    async with (
        aiohttp.ClientSession(service.url) as session,
        session.ws_connect(f"/sandboxes/{sandbox}/exec/pty{query}") as socket,
        asyncio.timeout(GENEROUS_S),
    ):
        await socket.send_json({"type": "init", **init})
        yield socket


async def keys(socket: aiohttp.ClientWebSocketResponse, typed: bytes) -> None:
    await socket.send_json({"type": "stdin", "data": base64.b64encode(typed).decode()})


async def until(socket: aiohttp.ClientWebSocketResponse, kind: str) -> tuple[dict[str, Any], bytes]:
    """The frame of that kind, and what the terminal showed before it."""
    shown = b""
    async for message in socket:
        said = json.loads(message.data)
        if said["type"] == kind:
            return said, shown
        shown += base64.b64decode(said.get("data", ""))
    raise AssertionError(f"closed without {kind}; shown: {shown!r}")


async def test_a_shell_has_a_terminal_of_the_size_asked_for_and_tells_its_end(
    service: Running, sandbox: str
) -> None:
    asked: dict[str, Any] = {"cmd": ["/bin/sh"], "rows": 30, "cols": 100, "env": {"A": "b"}, "cwd": "/tmp"}
    async with terminal(service, sandbox, **asked) as socket:
        assert (await until(socket, "ready"))[0]["pid"] > 0
        await keys(socket, b"stty size; pwd; echo $A; exit 3\n")
        ended, shown = await until(socket, "exit")
    assert ended["code"] == 3
    assert b"30 100\r\n/tmp\r\nb\r\n" in shown


async def test_the_tail_is_whole_at_the_end(service: Running, sandbox: str) -> None:
    async with terminal(service, sandbox, cmd=["sh", "-c", "seq 1 20000"]) as socket:
        _, shown = await until(socket, "exit")
    assert shown.split()[-1] == b"20000"
    assert len(shown.split()) == 20000


async def test_a_large_paste_arrives(service: Running, sandbox: str) -> None:
    command = ["sh", "-c", "stty raw -echo; echo up; head -c 1000000 | md5sum"]
    async with terminal(service, sandbox, cmd=command) as socket:
        shown = b""
        while b"up" not in shown:
            said, more = await until(socket, "stdout")
            shown += more + base64.b64decode(said["data"])
        for _ in range(50):
            await keys(socket, b"x" * 20_000)
        _, shown = await until(socket, "exit")
    assert hashlib.md5(b"x" * 1_000_000).hexdigest().encode() in shown


async def test_it_is_resized_and_signalled(service: Running, sandbox: str) -> None:
    command = ["sh", "-c", "trap 'stty size; exit 5' TERM; echo up; while :; do sleep 0.05; done"]
    async with terminal(service, sandbox, cmd=command) as socket:
        await until(socket, "stdout")
        await socket.send_json({"type": "resize", "rows": 11, "cols": 22})
        await socket.send_json({"type": "signal", "sig": "TERM"})
        ended, shown = await until(socket, "exit")
    assert (ended["code"], b"11 22" in shown) == (5, True)


@pytest.mark.parametrize("politely", [True, False])
async def test_the_program_ends_when_its_client_leaves(
    service: Running, client: httpx.Client, sandbox: str, politely: bool
) -> None:
    async with terminal(service, sandbox, cmd=["sh", "-c", "echo up; sleep 1000 & sleep 1000"]) as socket:
        await until(socket, "stdout")
        if politely:
            await socket.send_json({"type": "close"})
            assert (await socket.receive()).type is aiohttp.WSMsgType.CLOSE
    last = client.get(f"/v2/sandboxes/{sandbox}/execs").json()["execs"][-1]["id"]
    ended = client.get(f"/v2/sandboxes/{sandbox}/execs/{last}", params={"wait": GENEROUS_S}).json()
    assert ended["state"] == "exited"
    assert ended["exit_code"] >= 128


@pytest.mark.parametrize(
    "first",
    [
        {"type": "stdin", "data": ""},
        {"type": "init", "cmd": []},
        {"type": "init", "cmd": ["/no/such/program"]},
        {"type": "init", "cmd": ["true"], "rows": 0},
        {"type": "init", "cmd": ["true"], "cwd": "/nowhere"},
        {"type": "nonsense"},
        [],
    ],
)
async def test_what_cannot_begin_is_told_and_closed(service: Running, sandbox: str, first: object) -> None:
    async with (
        aiohttp.ClientSession(service.url) as session,
        session.ws_connect(f"/sandboxes/{sandbox}/exec/pty") as socket,
    ):
        await socket.send_json(first)
        told = json.loads((await socket.receive()).data)
        assert told["type"] == "error"
        assert told["message"]
        assert (await socket.receive()).type is aiohttp.WSMsgType.CLOSE


@pytest.fixture
def access(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """The access log is caught also where a service that ran before keeps it from the root logger."""
    logger = logging.getLogger("orchard.service.access")
    logger.addHandler(caplog.handler)
    yield
    logger.removeHandler(caplog.handler)


@pytest.mark.usefixtures("access")
async def test_a_key_in_the_query_is_in_no_log(
    service: Running, sandbox: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with terminal(service, sandbox, "?api_key=very-secret", cmd=["true"]) as socket:
        await until(socket, "exit")
    async with asyncio.timeout(GENEROUS_S):  # the service writes it when the client has left
        while not any(record.name == "orchard.service.access" for record in caplog.records):
            await asyncio.sleep(0.01)
    assert "very-secret" not in "".join(
        record.getMessage() for record in caplog.records if not record.name.startswith("aiohttp")
    )
