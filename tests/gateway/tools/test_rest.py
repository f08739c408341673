"""The REST pair, who may ask, and the order of calls."""

from __future__ import annotations

import asyncio
import base64
import secrets

import aiohttp
import pytest

from orchard_core import SessionContext, TaskInvalid, Tool, ToolResult
from orchard_core.gateway.app import MAX_OPEN
from orchard_core.gateway.server import Gateway
from orchard_core.testing import FakeModel, FakeTool

from .conftest import PIXEL, Program, Slow, task


@pytest.fixture
def slow() -> Slow:
    return Slow()


@pytest.fixture
def broken() -> FakeTool:
    def fail(args: object) -> ToolResult:
        raise ZeroDivisionError("/home/me/secret.py")

    return FakeTool("broken", fail)


@pytest.fixture
def tools(tools: list[Tool], slow: Slow, broken: FakeTool) -> list[Tool]:
    return [*tools, slow, broken]


async def test_the_list_says_what_each_takes(program: Program) -> None:
    got = await program.ask("GET", "/tools")
    assert got.status == 200
    assert got.body[0] == {
        "name": "echo",
        "description": "Gives back its argument `words`.",
        "parameters": {"type": "object", "properties": {"words": {"type": "string"}}},
    }


async def test_a_call_gives_content_and_whether_it_failed_or_ended(program: Program) -> None:
    said = await program.ask("POST", "/tools/call/echo", {"words": "hi"})
    assert said.body == {"content": [{"type": "text", "text": "hi"}], "is_error": False, "ends": False}
    shown = await program.ask("POST", "/tools/call/shot", {})
    assert base64.b64decode(shown.body["content"][1]["data"]) == PIXEL
    assert (await program.ask("POST", "/tools/call/wrong", {})).body["is_error"] is True
    assert (await program.ask("POST", "/tools/call/finish", {})).body["ends"] is True


async def test_after_the_end_neither_tool_nor_model_answers(program: Program) -> None:
    await program.ask("POST", "/tools/call/finish", {})
    late = await program.ask("POST", "/tools/call/echo", {"words": "more"})
    assert late.body["is_error"] is True
    assert "the episode has ended" in late.body["content"][0]["text"]
    chat = {"model": "fake", "messages": [{"role": "user", "content": "on?"}]}
    refused = await program.ask("POST", "/v1/chat/completions", chat)
    assert (refused.status, refused.body["error"]["code"]) == (403, "session_closed")
    assert program.session.trajectory().calls == ()


async def test_a_tool_that_breaks_is_over_and_tells_no_details(program: Program) -> None:
    got = await program.ask("POST", "/tools/call/broken", {})
    assert got.body["is_error"] is True
    assert "broken broke down" in got.body["content"][0]["text"]
    assert "secret" not in str(got.body)
    again = await program.ask("POST", "/tools/call/echo", {})
    assert "broke down" in again.body["content"][0]["text"]


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b"5", b'"x"', b"null", b"\xff", b"[" * 9999])
async def test_arguments_are_an_object(program: Program, raw: bytes) -> None:
    got = await program.ask("POST", "/tools/call/echo", raw=raw)
    assert (got.status, got.body["error"]["code"]) == (400, "invalid_request")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", "/tools/call/sing", 404),
        ("POST", "/tools/call/", 404),
        ("POST", "/tools/call/echo/..", 404),
        ("POST", "/tools/x", 404),
        ("POST", "/tools", 405),
        ("GET", "/tools/call/echo", 405),
        ("DELETE", "/tools", 405),
    ],
)
async def test_other_paths_and_methods_are_named(
    program: Program, method: str, path: str, status: int
) -> None:
    raw = b"{}" if method == "POST" else None
    got = await program.ask(method, path, raw=raw)
    assert (got.status, "message" in got.body["error"]) == (status, True)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://127.0.0.1.evil.example"}, 403),
        ({"Origin": "http://[::1"}, 403),
        ({"Origin": "http://localhost:3000"}, 200),
        ({"Host": "evil.example"}, 421),
        ({"Host": "127.0.0.1@evil.example"}, 421),
        ({"Host": "localhost:99"}, 200),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/json; charset=utf-8"}, 200),
        ({"Content-Encoding": "gzip"}, 415),
    ],
)
@pytest.mark.parametrize("path", ["/tools/mcp", "/tools/call/echo"])
async def test_only_a_program_beside_it_may_ask(
    program: Program, path: str, headers: dict[str, str], status: int
) -> None:
    raw = b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}'
    assert (await program.ask("POST", path, raw=raw, headers=headers)).status == status


@pytest.mark.parametrize("path", ["/tools", "/tools/mcp", "/tools/call/echo", "/tools/none"])
async def test_without_the_key_nothing_is_told(program: Program, path: str) -> None:
    for headers in ({"Authorization": ""}, {"Authorization": "Bearer sk-orchard-" + secrets.token_hex(8)}):
        got = await program.ask("POST", path, raw=b"{}", headers=headers)
        assert got.status == 401
        assert "echo" not in str(got.body)


async def test_the_key_may_come_as_anthropics_clients_send_it(program: Program) -> None:
    headers = {"Authorization": "", "x-api-key": program.endpoint.api_key}
    assert (await program.ask("GET", "/tools", headers=headers)).status == 200


async def test_a_body_past_the_limit_is_refused(program: Program) -> None:
    got = await program.ask("POST", "/tools/call/echo", raw=b'{"words":"' + b"x" * (1 << 20) + b'"}')
    assert got.status == 413


async def test_calls_take_turns_in_the_order_they_came(program: Program, slow: Slow) -> None:
    first = asyncio.create_task(program.ask("POST", "/tools/call/slow", {}))
    await slow.begun.wait()
    second = asyncio.create_task(program.ask("POST", "/tools/call/finish", {}))
    assert (await program.ask("GET", "/tools")).status == 200, "the list waits for no call"
    assert not second.done()
    slow.go.set()
    assert (await first).body["content"][0]["text"] == "slept"
    assert (await second).body["ends"] is True


async def test_a_key_has_only_so_many_requests_open(program: Program, slow: Slow) -> None:
    calls = [asyncio.create_task(program.ask("POST", "/tools/call/slow", {})) for _ in range(MAX_OPEN)]
    while program.session.requests < MAX_OPEN:
        await asyncio.sleep(0)
    refused = await program.ask("GET", "/tools")
    assert (refused.status, refused.body["error"]["code"]) == (429, "too_many_open_calls")
    slow.go.set()
    assert {call.status for call in await asyncio.gather(*calls)} == {200}
    assert len(slow.calls) == MAX_OPEN


async def test_a_client_that_leaves_ends_its_call(program: Program, slow: Slow) -> None:
    first = asyncio.create_task(program.ask("POST", "/tools/call/slow", {}))
    await slow.begun.wait()
    first.cancel()
    await asyncio.wait_for(slow.ended.wait(), 30)
    assert (await program.ask("POST", "/tools/call/echo", {"words": "next"})).status == 200


async def test_closing_the_session_ends_the_call_in_words(program: Program, slow: Slow) -> None:
    first = asyncio.create_task(program.ask("POST", "/tools/call/slow", {}))
    await slow.begun.wait()
    await program.session.close()
    assert (await first).status == 403
    assert slow.ended.is_set()


async def test_a_key_reaches_its_own_tools_only(
    gateway: Gateway, http: aiohttp.ClientSession, program: Program
) -> None:
    mine = FakeTool("mine")
    context = SessionContext(rollout="other", task=task(), solution=lambda: None)
    other = Program(http, await gateway.open_session(FakeModel(), context, tools=[mine]))
    assert [tool["name"] for tool in (await other.ask("GET", "/tools")).body] == ["mine"]
    assert (await other.ask("POST", "/tools/call/echo", {})).status == 404
    assert (await program.ask("POST", "/tools/call/mine", {})).status == 404
    await other.session.close()


async def test_a_task_without_tools_has_an_empty_list(gateway: Gateway, http: aiohttp.ClientSession) -> None:
    context = SessionContext(rollout="bare", task=task(), solution=lambda: None)
    bare = Program(http, await gateway.open_session(FakeModel(), context))
    assert (await bare.ask("GET", "/tools")).body == []
    await bare.session.close()


async def test_words_that_are_no_unicode_still_arrive(gateway: Gateway, http: aiohttp.ClientSession) -> None:
    tool = FakeTool("odd", lambda args: ToolResult.text("half \ud83d of it"))
    context = SessionContext(rollout="odd", task=task(), solution=lambda: None)
    odd = Program(http, await gateway.open_session(FakeModel(), context, tools=[tool]))
    got = await odd.ask("POST", "/tools/call/odd", {})
    assert got.body["content"][0]["text"] == "half \\ud83d of it"
    await odd.session.close()


async def test_errors_of_the_tree_are_hidden_alike(gateway: Gateway, http: aiohttp.ClientSession) -> None:
    def fail(args: object) -> ToolResult:
        raise TaskInvalid("the service's files are broken")

    context = SessionContext(rollout="bad", task=task(), solution=lambda: None)
    bad = Program(http, await gateway.open_session(FakeModel(), context, tools=[FakeTool("bad", fail)]))
    got = await bad.ask("POST", "/tools/call/bad", {})
    assert (got.status, got.body["is_error"]) == (200, True)
    await bad.session.close()
