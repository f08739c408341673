"""Model servers that fail, stall, break off or lie, in every dialect: told in its shape, and recorded."""

from __future__ import annotations

import asyncio
import json

import aiohttp
import pytest

from .client import Client
from .conftest import Open
from .dialects import Json, Spoken, events_of
from .model_server import ModelServer, fails, resets, sends, stalls, streams


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("act", "status", "kind"),
    [
        (resets(), 502, "ModelUnavailable"),
        (fails(503), 502, "ModelUnavailable"),
        (fails(429), 429, "ModelRateLimited"),
        (fails(401, {"detail": "who?"}), 401, "ModelRejected"),
        (sends(b"<html>login</html>", kind="text/html"), 502, "ModelReplyMalformed"),
        (sends(b"[]"), 502, "ModelReplyMalformed"),
        (sends(b'{"choices":[{"message":'), 502, "ModelReplyMalformed"),
        (streams(b"data: {}\n\n", done=False), 502, "ModelReplyMalformed"),
        (streams(b"data: [1,2\n\n", done=False), 502, "ModelReplyMalformed"),
        (streams(b"", done=False), 502, "ModelReplyMalformed"),
    ],
)
async def test_a_server_that_fails_is_told_in_the_dialect_and_recorded(
    server: ModelServer, dial: Open, spoken: Spoken, act: object, status: int, kind: str, stream: bool
) -> None:
    server.otherwise = act  # type: ignore[assignment]
    session, client = await dial()
    answer = await spoken.post(client, spoken.body(stream=stream))
    if answer.status == 200:  # a translated stream may have begun
        assert spoken.last_message(answer)
    else:
        assert answer.status == status
        assert spoken.message(answer.json)
        assert answer.headers["x-should-retry"] == "false"
    (call,) = (await session.close()).calls
    assert call.error is not None
    assert call.error.kind == kind
    assert "vendor-secret-key" not in answer.raw.decode()


async def test_a_server_that_refuses_is_quoted(server: ModelServer, dial: Open, spoken: Spoken) -> None:
    server.otherwise = fails(
        400, {"error": {"message": "no such tool", "type": "x", "param": None, "code": "bad"}}
    )
    _, client = await dial(token_ids="off")
    answer = await spoken.post(client, spoken.body())
    assert (answer.status, spoken.message(answer.json)) == (400, "no such tool")


@pytest.mark.parametrize("stream", [False, True])
async def test_a_server_that_stalls_is_given_up(
    server: ModelServer, dial: Open, spoken: Spoken, stream: bool
) -> None:
    left = asyncio.Event()
    server.otherwise = stalls(left)
    session, client = await dial(timeout_s=0.2)
    answer = await spoken.post(client, spoken.body(stream=stream))
    assert (answer.status, "within 0.2 s" in spoken.message(answer.json)) == (504, True)
    await asyncio.wait_for(left.wait(), 10)
    (call,) = (await session.close()).calls
    assert call.error is not None
    assert call.error.kind == "ModelTimeout"


@pytest.mark.parametrize("kept", range(1, 6))
@pytest.mark.parametrize(
    ("end", "reset"),
    [(b"", False), (b"", True), (b'data: {"type": "resp', False), (b"data: not json\n\n", False)],
    ids=["ends", "resets", "half an event", "no json"],
)
async def test_a_stream_that_breaks_ends_with_an_error_event(
    server: ModelServer, dial: Open, spoken: Spoken, kept: int, end: bytes, reset: bool
) -> None:
    """Wherever it breaks before its end; after it, the answer is whole."""
    server.otherwise = streams(*spoken.events[: min(kept, _before_end(spoken))], end, done=False, reset=reset)
    session, client = await dial()
    answer = await spoken.post(client, spoken.body(stream=True))
    assert spoken.last_message(answer) if answer.status == 200 else spoken.message(answer.json)
    (call,) = (await session.close()).calls
    assert call.error is not None
    assert call.error.kind in ("ModelUnavailable", "ModelReplyMalformed")


def _before_end(spoken: Spoken) -> int:
    """How many events come before the one that tells why the answer ended."""
    words = ("finish_reason", "stop_reason", "response.completed")
    ends = [any(f'"{word}": "' in json.dumps(event) for word in words[:2]) for event in spoken.events]
    last = [event.get("type") == words[2] for event in spoken.events]
    return next(at for at, (one, other) in enumerate(zip(ends, last, strict=True)) if one or other)


async def test_a_client_that_leaves_in_mid_stream_ends_its_call_alone(
    server: ModelServer, dial: Open, spoken: Spoken
) -> None:
    pause = asyncio.Event()
    server.plan = [streams(*spoken.events, pause=pause)]
    server.otherwise = sends(json.dumps(spoken.answer).encode())
    session, client = await dial()
    async with _begun(client, spoken) as response:
        await response.content.readuntil(b"\n\n")
        response.close()
    async with asyncio.timeout(10):
        while server.in_flight or not session.trajectory().calls:
            await asyncio.sleep(0.01)
    assert (await spoken.post(client, spoken.body())).status == 200
    first, second = (await session.close()).calls
    assert first.error is not None
    assert (first.error.kind, second.error) == ("Cancelled", None)


def _begun(client: Client, spoken: Spoken) -> aiohttp.client._RequestContextManager:
    headers = {"x-api-key": client.endpoint.api_key}
    url = client.endpoint.base_url + spoken.path
    return client.http.post(url, json=spoken.body(stream=True), headers=headers)


async def test_a_session_that_closes_ends_its_streams_in_their_dialect(
    server: ModelServer, dial: Open, spoken: Spoken
) -> None:
    server.plan = [streams(*spoken.events, pause=asyncio.Event())]
    session, client = await dial()
    async with _begun(client, spoken) as response:
        first = await response.content.readuntil(b"\n\n")
        await session.close()
        rest = await response.read()
    assert any("session was closed" in json.dumps(event) for event in events_of(first + rest))


REPORTS = (
    {"error": {"message": "no such key: vendor-secret-key", "code": "bad_key"}},
    {"type": "error", "error": {"type": "api_error", "message": "no such key: vendor-secret-key"}},
    {"type": "error", "code": "bad_key", "message": "no such key: vendor-secret-key"},
    {"type": "response.failed", "response": {"error": {"message": "no such key: vendor-secret-key"}}},
    {"status": "failed", "error": {"message": "no such key: vendor-secret-key"}},
)


@pytest.mark.parametrize("report", REPORTS, ids=range(len(REPORTS)))
@pytest.mark.parametrize("stream", [False, True])
async def test_no_error_of_a_server_shows_the_vendor_s_key(
    server: ModelServer, dial: Open, spoken: Spoken, report: Json, stream: bool
) -> None:
    """Whether it reports the error as such, in mid-stream or as a success."""
    server.otherwise = streams(spoken.events[0], report) if stream else sends(json.dumps(report).encode())
    session, client = await dial()
    answer = await spoken.post(client, spoken.body(stream=stream))
    assert "vendor-secret-key" not in answer.raw.decode()
    trajectory = await session.close()
    assert "vendor-secret-key" not in trajectory.model_dump_json()
    assert trajectory.calls[0].error is not None
