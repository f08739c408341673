"""What holds of every dialect: bad requests, bad servers and bad manners are told in its own shape."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

import aiohttp
import pytest

from orchard_core import Limits, Usage
from orchard_core.gateway.openai import OpenAIModel
from orchard_core.gateway.session import Session

from .client import Client
from .conftest import Open
from .dialects import DIALECTS, Spoken, events_of
from .model_server import ModelServer, fails, resets, sends, stalls, streams


@pytest.fixture(params=DIALECTS, ids=lambda spoken: spoken.name)
def spoken(request: pytest.FixtureRequest) -> Spoken:
    row: Spoken = request.param
    return row


@pytest.fixture
def dial(open_session: Open, connect: Callable[..., OpenAIModel], spoken: Spoken) -> Open:
    """A session to a server of the row's dialects."""

    async def make(**options: object) -> tuple[Session, Client]:
        own = {name: options.pop(name) for name in ("limits",) if name in options}
        return await open_session(connect(dialects=spoken.served, **options), **own)

    return make


async def test_a_whole_answer_is_recorded(server: ModelServer, dial: Open, spoken: Spoken) -> None:
    server.plan = [sends(json.dumps(spoken.answer).encode())]
    session, client = await dial()
    answer = await spoken.post(client, spoken.body())
    assert answer.status == 200
    assert b"hello" in answer.raw
    assert server.asked[0].request.path == spoken.url
    (call,) = (await session.close()).calls
    assert (call.dialect, call.usage) == (spoken.dialect, Usage(input=10, output=5))
    assert (call.wire is None) == spoken.native


async def test_a_streamed_answer_is_recorded(server: ModelServer, dial: Open, spoken: Spoken) -> None:
    server.plan = [streams(*spoken.events)]
    session, client = await dial()
    answer = await spoken.post(client, spoken.body(stream=True))
    assert len(list(events_of(answer.raw))) >= len(spoken.events)
    trajectory = await session.close()
    (call,) = trajectory.calls
    assert (call.streamed, call.error) == (True, None)
    assert "hello" in trajectory.messages[call.response or ""].raw


BROKEN = (
    (b"", "cannot be read"),
    (b"{", "cannot be read"),
    (b"[]", "object"),
    (b"null", "object"),
    (b'"x"', "object"),
    (b'{"model":"m"}', "LISTED"),
    (b'{"model":"m","max_tokens":1,"LISTED":7}', "LISTED|array"),
    (b'{"model":7,"max_tokens":1,"LISTED":[{"role":"user","content":"x"}]}', "model"),
    (b'{"model":"m","LISTED":[{"role":"user","content":"x"}]} x', "extra data"),
    (b'{"model":"m","LISTED":[{"role":"user","content":"x"}],"stream":"yes"}', "stream"),
    (b'{"model":"m","LISTED":[{"role":"user","content":"x"}],"temperature":NaN}', "NaN"),
    (b'{"model":"m","LISTED":[{"role":"user","content":"\xff"}]}', "UTF-8"),
    (b'{"model":"m","LISTED":[{"role":"user","content":"a\nb"}]}', "control"),
    (b'{"model":"m","LISTED":' + b"[" * 200_000 + b"]" * 200_000 + b"}", "deep"),
    (b"[" * 1_000_000, "object|deep"),
)


@pytest.mark.parametrize(("body", "words"), BROKEN, ids=range(len(BROKEN)))
async def test_a_broken_request_is_told_what_is_wrong(
    server: ModelServer, dial: Open, spoken: Spoken, body: bytes, words: str
) -> None:
    session, client = await dial()
    answer = await spoken.post(client, body.replace(b"LISTED", spoken.listed.encode()))
    assert answer.status == 400
    assert answer.headers["x-should-retry"] == "false"
    message = spoken.message(answer.json)
    assert any(word in message for word in words.replace("LISTED", spoken.listed).split("|")), message
    assert server.asked == []
    server.otherwise = sends(json.dumps(spoken.answer).encode())
    assert (await spoken.post(client, spoken.body())).status == 200
    assert len((await session.close()).calls) == 1


async def test_a_request_cut_anywhere_is_refused(server: ModelServer, dial: Open, spoken: Spoken) -> None:
    _, client = await dial()
    body = json.dumps(spoken.body("é" * 3, tools=[])).encode()
    answers = await asyncio.gather(*(spoken.post(client, body[:at]) for at in range(0, len(body), 3)))
    assert {answer.status for answer in answers} == {400}
    assert all(spoken.message(answer.json) for answer in answers)
    assert server.asked == []


@pytest.mark.parametrize("key", ["", "sk-orchard-wrong", "vendor-secret-key", "x" * 5000])
async def test_a_wrong_key_opens_nothing(server: ModelServer, dial: Open, spoken: Spoken, key: str) -> None:
    _, client = await dial()
    answer = await spoken.post(client, spoken.body(), key=key)
    assert answer.status == 401
    assert "key" in spoken.message(answer.json)
    assert server.asked == []


async def test_what_is_not_to_be_had_is_refused_in_the_dialect(
    server: ModelServer, dial: Open, spoken: Spoken
) -> None:
    _, client = await dial()
    other = await spoken.post(client, spoken.body(model="gpt-expensive"))
    assert (other.status, "serves the model" in spoken.message(other.json)) == (404, True)
    big = await spoken.post(client, spoken.body("x" * (9 << 20)))
    assert (big.status, "larger than" in spoken.message(big.json)) == (413, True)
    url, key = client.endpoint.base_url + spoken.path, {"x-api-key": client.endpoint.api_key}
    async with client.http.get(url, headers=key) as got:
        assert (got.status, "does not take GET" in spoken.message(await got.json())) == (405, True)
    async with client.http.post(url, data=b"x", headers={**key, "Content-Encoding": "gzip"}) as sent:
        assert (sent.status, "compressed" in spoken.message(await sent.json())) == (415, True)
    assert server.asked == []


async def test_a_query_changes_nothing(server: ModelServer, dial: Open, spoken: Spoken) -> None:
    server.plan = [sends(json.dumps(spoken.answer).encode())]
    _, client = await dial()
    url, key = f"{client.endpoint.base_url}{spoken.path}?beta=true", {"x-api-key": client.endpoint.api_key}
    async with client.http.post(url, json=spoken.body(), headers=key) as got:
        assert got.status == 200


async def test_a_used_up_budget_and_a_closed_session_are_told(
    server: ModelServer, dial: Open, spoken: Spoken
) -> None:
    server.otherwise = sends(json.dumps(spoken.answer).encode())
    session, client = await dial(limits=Limits(calls=1))
    assert (await spoken.post(client, spoken.body())).status == 200
    refused = await spoken.post(client, spoken.body(stream=True))
    assert (refused.status, "budget is used up" in spoken.message(refused.json)) == (403, True)
    await session.close()
    gone = await spoken.post(client, spoken.body())
    assert (gone.status, bool(spoken.message(gone.json))) == (401, True)


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


async def test_sessions_of_several_dialects_see_nothing_of_each_other(
    server: ModelServer, open_session: Open, connect: Callable[..., OpenAIModel]
) -> None:
    """All at once on one listener, to one server that answers what it was asked."""

    async def echoes(asked: object) -> object:
        word = json.dumps(asked.body).partition("secret-")[2][:1]  # type: ignore[attr-defined]
        row = next(row for row in DIALECTS if row.url == asked.request.path)  # type: ignore[attr-defined]
        return await sends(json.dumps(row.answer).replace("hello", f"for {word}").encode())(asked)  # type: ignore[arg-type]

    server.otherwise = echoes  # type: ignore[assignment]
    made = [await open_session(connect(dialects=row.served)) for row in DIALECTS]
    rounds = [
        (at, row.post(client, row.body(f"secret-{at}")))
        for _ in range(5)
        for at, (row, (_, client)) in enumerate(zip(DIALECTS, made, strict=True))
    ]
    answers = await asyncio.gather(*(coming for _, coming in rounds))
    for (at, _), answer in zip(rounds, answers, strict=True):
        assert f"for {at}" in answer.raw.decode()
    for at, (session, _) in enumerate(made):
        text = (await session.close()).model_dump_json()
        assert [f"secret-{other}" in text for other in range(len(made))] == [
            other == at for other in range(len(made))
        ]


@pytest.mark.parametrize("path", ["/messages/batches", "/messagesx", "/messages/"])
async def test_a_path_that_is_not_served_is_refused_in_the_dialect_it_is_like(
    open_session: Open, path: str
) -> None:
    _, client = await open_session()
    answer = await client.post({}, path=path)
    assert (answer.status, answer.json["type"]) == (404, "error")


async def test_whether_anyone_is_there_needs_no_key(open_session: Open) -> None:
    _, client = await open_session()
    async with client.http.head(client.endpoint.root_url + "/") as answer:
        assert (answer.status, await answer.read()) == (200, b"")


async def test_the_models_list_has_the_shape_of_who_asks(open_session: Open) -> None:
    _, client = await open_session()
    key = {"x-api-key": client.endpoint.api_key}
    url = f"{client.endpoint.base_url}/models"
    async with client.http.get(url, headers=key) as plain:
        assert (await plain.json())["object"] == "list"
    async with client.http.get(url, headers={**key, "anthropic-version": "2023-06-01"}) as other:
        assert (await other.json())["data"][0]["type"] == "model"
    async with client.http.get(f"{url}/m", headers=key) as one:
        assert (await one.json())["id"] == "m"
    async with client.http.get(f"{url}/other", headers=key) as missing:
        assert missing.status == 404
    async with client.http.post(url, headers=key) as wrong:
        assert wrong.status == 405


def _with(value: object, nested: bytes) -> bytes:
    """The object with a further field."""
    return json.dumps(value).encode().replace(b"{", b'{"vendor":' + nested + b",", 1)


@pytest.mark.parametrize("depth", [100, 240, 300, 700, 990, 1100, 5000])
async def test_deep_nesting_is_answered_or_refused(
    server: ModelServer, dial: Open, spoken: Spoken, depth: int
) -> None:
    """In a request, a whole answer and a stream: Python's own limit lies somewhere between these depths."""
    session, client = await dial()
    server.otherwise = sends(json.dumps(spoken.answer).encode())
    nested = b"[" * depth + b"]" * depth
    sent = await spoken.post(client, _with(spoken.body(), nested))
    assert sent.status == 200 or "deep" in spoken.message(sent.json)
    assert depth > 250 or sent.status == 200
    server.otherwise = sends(_with(spoken.answer, nested))
    whole = await spoken.post(client, spoken.body())
    assert whole.status == 200 or spoken.message(whole.json)
    server.otherwise = streams(*(b"data: %b\n\n" % _with(event, nested) for event in spoken.events))
    streamed = await spoken.post(client, spoken.body(stream=True))
    assert list(events_of(streamed.raw)) if streamed.status == 200 else spoken.message(streamed.json)
    again = await session.close()
    assert again.model_validate_json(again.model_dump_json()) == again
