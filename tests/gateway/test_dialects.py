"""What holds of every dialect: bad requests and bad manners are told in its own shape."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

import pytest

from orchard_core import Limits, Usage
from orchard_core.gateway.openai import OpenAIModel

from .conftest import Open
from .dialects import DIALECTS, Spoken, events_of
from .model_server import ModelServer, sends, streams


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
