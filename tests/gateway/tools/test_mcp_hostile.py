"""What is no MCP is answered with an error, and the session goes on."""

from __future__ import annotations

import asyncio
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchard_core.gateway.tools import jsonrpc
from orchard_core.gateway.tools.exchange import ToolRequest
from orchard_core.gateway.tools.peers import PEERS
from orchard_core.gateway.tools.routes import answer
from orchard_core.gateway.tools.served import ServedTools

from .conftest import Program, Slow, stock

HEADERS = {b"host": b"127.0.0.1:1", b"content-type": b"application/json"}


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (b"", jsonrpc.PARSE_ERROR),
        (b"{", jsonrpc.PARSE_ERROR),
        (b"\xff\xfe", jsonrpc.PARSE_ERROR),
        (b"[" * 100_000, jsonrpc.PARSE_ERROR),
        (b"NaN", jsonrpc.PARSE_ERROR),
        (b"null", jsonrpc.INVALID_REQUEST),
        (b"[]", jsonrpc.INVALID_REQUEST),
        (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', jsonrpc.INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', jsonrpc.INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', jsonrpc.INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', jsonrpc.INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', jsonrpc.INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","id":1,"method":5}', jsonrpc.INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","id":1}', jsonrpc.INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}', jsonrpc.INVALID_PARAMS),
    ],
)
async def test_what_cannot_be_read_is_a_json_rpc_error(program: Program, raw: bytes, code: int) -> None:
    got = await program.ask("POST", "/tools/mcp", raw=raw)
    assert (got.status, got.body["error"]["code"]) == (400, code)
    assert (await program.rpc("ping")).body["result"] == {}


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"name": 5},
        {"name": "sing"},
        {"name": "../mcp"},
        {"name": "echo", "arguments": []},
        {"name": "echo", "arguments": "words"},
        {"name": "echo", "arguments": 0},
        {"name": "echo", "arguments": False},
    ],
)
async def test_a_call_that_names_no_tool_or_no_object_runs_nothing(
    program: Program, params: dict[str, object]
) -> None:
    got = await program.rpc("tools/call", params)
    assert got.body["error"]["code"] == jsonrpc.INVALID_PARAMS
    assert program.session.tools.over == ""


async def test_an_unknown_method_is_named(program: Program) -> None:
    got = await program.rpc("resources/list")
    assert (got.status, got.body["error"]["code"], got.body["id"]) == (200, jsonrpc.METHOD_NOT_FOUND, 1)


async def test_the_newest_revision_answers_an_unknown_method_with_404(program: Program) -> None:
    meta = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}
    headers = {"mcp_protocol_version": "2026-07-28", "mcp_method": "prompts/list"}
    got = await program.rpc("prompts/list", meta, **headers)
    assert (got.status, got.body["error"]["code"]) == (404, jsonrpc.METHOD_NOT_FOUND)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"mcp_protocol_version": "2025-06-18", "mcp_method": "tools/call", "mcp_name": "echo"},
        {"mcp_protocol_version": "2026-07-28", "mcp_method": "tools/list", "mcp_name": "echo"},
        {"mcp_protocol_version": "2026-07-28", "mcp_method": "tools/call", "mcp_name": "finish"},
        {"mcp_protocol_version": "2026-07-28", "mcp_method": "tools/call"},
    ],
)
async def test_headers_that_contradict_the_body_are_refused(
    program: Program, headers: dict[str, str]
) -> None:
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
    got = await program.rpc("tools/call", {"_meta": meta, "name": "echo", "arguments": {}}, **headers)
    assert (got.status, got.body["error"]["code"]) == (400, jsonrpc.HEADER_MISMATCH)


async def test_a_revision_nobody_speaks_is_answered_with_those_that_are_spoken(program: Program) -> None:
    meta = {"io.modelcontextprotocol/protocolVersion": "2031-01-01"}
    headers = {"mcp_protocol_version": "2031-01-01", "mcp_method": "tools/list"}
    got = await program.rpc("tools/list", {"_meta": meta}, **headers)
    assert (got.status, got.body["error"]["code"]) == (400, jsonrpc.UNSUPPORTED_VERSION)
    assert "2025-11-25" in got.body["error"]["data"]["supported"]
    assert (await program.rpc("ping", mcp_protocol_version="1999-01-01")).status == 400


@pytest.mark.parametrize(
    ("asked", "given"),
    [
        ("2024-11-05", "2024-11-05"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2099-01-01", "2025-11-25"),
        (5, "2025-11-25"),
        (None, "2025-11-25"),
    ],
)
async def test_the_handshake_agrees_on_a_revision(program: Program, asked: object, given: str) -> None:
    got = await program.rpc("initialize", {"protocolVersion": asked, "capabilities": {}})
    assert got.body["result"]["protocolVersion"] == given
    assert got.body["result"]["capabilities"] == {"tools": {"listChanged": False}}


async def test_no_stream_is_offered(program: Program) -> None:
    got = await program.ask("GET", "/tools/mcp", headers={"Accept": "text/event-stream"})
    assert (got.status, got.headers["allow"]) == (405, "POST, DELETE")


async def test_notifications_and_answers_get_no_body(program: Program) -> None:
    for message in (
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": [1]}},
        {"jsonrpc": "2.0", "method": "of/no/meaning"},
        {"jsonrpc": "2.0", "id": 7, "result": {}},
        {"jsonrpc": "2.0", "id": 7, "error": {"code": 1, "message": "no"}},
    ):
        got = await program.ask("POST", "/tools/mcp", message)
        assert (got.status, got.body) == (202, None)


async def test_a_batch_is_answered_where_its_revision_has_batches(program: Program) -> None:
    batch = [
        {"jsonrpc": "2.0", "id": "a", "method": "ping"},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {
            "jsonrpc": "2.0",
            "id": "b",
            "method": "tools/call",
            "params": {"name": "echo", "arguments": {"words": "x"}},
        },
        {"jsonrpc": "2.0", "id": "c", "method": "initialize"},
        5,
    ]
    got = await program.ask("POST", "/tools/mcp", batch)
    assert [(answer.get("id"), "error" in answer) for answer in got.body] == [
        ("a", False), ("b", False), ("c", True), (None, True),
    ]  # fmt: skip
    newer = await program.ask("POST", "/tools/mcp", batch, headers={"MCP-Protocol-Version": "2025-11-25"})
    assert (newer.status, newer.body["error"]["code"]) == (400, jsonrpc.INVALID_REQUEST)
    huge = await program.ask("POST", "/tools/mcp", [batch[0]] * 65)
    assert huge.status == 400


async def test_good_bye_needs_a_name_that_is_known(program: Program) -> None:
    assert (await program.ask("DELETE", "/tools/mcp")).status == 400
    assert (await program.ask("DELETE", "/tools/mcp", headers={"Mcp-Session-Id": "x"})).status == 404
    name = (await program.rpc("initialize", {})).headers["mcp-session-id"]
    assert (await program.ask("DELETE", "/tools/mcp", headers={"Mcp-Session-Id": name})).status == 204


async def test_a_thousand_hellos_are_not_all_remembered(program: Program) -> None:
    for _ in range(PEERS + 5):
        await program.rpc("initialize", {})
    assert len(program.session.tools.peers.names) == PEERS


async def test_a_client_may_cancel_its_own_call_only() -> None:
    tool = Slow()
    served = ServedTools([tool])
    peers = [served.peers.greet() for _ in range(2)]
    call = {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "slow"}}
    work = asyncio.create_task(answer(served, _post(call, peers[0])))
    await tool.begun.wait()
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 3}}
    assert (await answer(served, _post(cancel, peers[1]))).status == 202
    assert not work.done()
    assert (await answer(served, _post(cancel, peers[0]))).status == 202
    got = json.loads((await work).body)
    assert (got["error"]["code"], tool.ended.is_set()) == (jsonrpc.CANCELLED, True)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=12,
)
messages = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.sampled_from(["2.0", "1.0", 2]),
        "id": json_values,
        "method": st.sampled_from(["initialize", "ping", "tools/list", "tools/call", "server/discover"])
        | json_values,
        "params": st.fixed_dictionaries(
            {},
            optional={
                "name": st.sampled_from(["echo", "shot", "wrong"]) | json_values,
                "arguments": json_values,
                "_meta": json_values
                | st.fixed_dictionaries({"io.modelcontextprotocol/protocolVersion": json_values}),
            },
        )
        | json_values,
        "result": json_values,
    },
)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(value=messages | st.lists(messages, max_size=3) | json_values)
def test_any_json_gets_an_answer_of_the_protocol(value: object) -> None:
    reply = asyncio.run(answer(ServedTools(stock()), _post(value, "")))
    assert reply.status in (200, 202, 400, 404)
    got = json.loads(reply.body) if reply.body else []
    for one in got if isinstance(got, list) else [got]:
        assert one["jsonrpc"] == "2.0"
        assert ("result" in one) != ("error" in one)


@settings(max_examples=200, deadline=None)
@given(raw=st.binary(max_size=200), path=st.text(max_size=20))
def test_any_bytes_on_any_path_get_an_answer(raw: bytes, path: str) -> None:
    for where in ("/tools/mcp", f"/tools/{path}", "/tools/call/echo"):
        request = ToolRequest(method="POST", path=where, headers=HEADERS, body=raw)
        reply = asyncio.run(answer(ServedTools(stock()), request))
        assert 200 <= reply.status < 500


def _post(value: object, session: str) -> ToolRequest:
    headers = {**HEADERS, **({b"mcp-session-id": session.encode()} if session else {})}
    return ToolRequest(method="POST", path="/tools/mcp", headers=headers, body=json.dumps(value).encode())
