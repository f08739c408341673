"""Clients that are hostile or broken: always a JSON error, never a crash, never another session's data."""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import urllib.error
import urllib.request
from collections.abc import Sequence

import aiohttp
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchard_core import ConfigError, Limits, SessionContext
from orchard_core.gateway.chat.codec import ChatCodec
from orchard_core.gateway.conversation import Conversation, Head
from orchard_core.gateway.json_text import JsonFault, ascii_text, loads
from orchard_core.gateway.server import Gateway
from orchard_core.testing.fakes.model import FakeModel

from .client import Client, user
from .conftest import Open
from .model_server import ModelServer, says, stalls

DEEP = b'{"model":"m","messages":[{"role":"user","content":' + b"[" * 200_000 + b"]" * 200_000 + b"}]}"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "object"),
        (b"{", "expected"),
        (b"[]", "object"),
        (b"null", "object"),
        (b'{"model":"m"}', "messages"),
        (b'{"messages":[{"role":"user","content":"x"}]}', "model"),
        (b'{"model":"m","messages":[]}', "empty"),
        (b'{"model":"m","messages":{}}', "array"),
        (b'{"model":"m","messages":["x"]}', "role"),
        (b'{"model":"m","messages":[{"content":"x"}]}', "role"),
        (b'{"model":"m","messages":[{"role":3}]}', "role"),
        (b'{"model":"m","messages":[{"role":"user"}]} x', "extra data"),
        (b'{"model":"m","messages":[{"role":"user"}],}', "name"),
        (b'{"model":"m","model":"m","messages":[{"role":"user"}]}', "twice"),
        (b'{"model":"m","\\u006dodel":"m","messages":[{"role":"user"}]}', "twice"),
        (b'{"model":"m","messages":[{"role":"user"}],"n":2}', "`n`"),
        (b'{"model":"m","messages":[{"role":"user"}],"stream":"yes"}', "stream"),
        (b'{"model":"m","messages":[{"role":"user"}],"stream":1}', "stream"),
        (b'{"model":"m","messages":[{"role":"user"}],"temperature":NaN}', "NaN"),
        (b'{"model":"m","messages":[{"role":"user"}],"seed":' + b"9" * 5000 + b"}", "digits"),
        (b'{"model":"m","messages":[{"role":"user","content":"\xff"}]}', "UTF-8"),
        (b'{"model":"m","messages":[{"role":"user","content":"a\nb"}]}', "control"),
        (DEEP, "deep"),
        (b"[" * 1_000_000, "object"),
    ],
)
async def test_a_broken_request_is_told_what_is_wrong(
    server: ModelServer, open_session: Open, body: bytes, words: str
) -> None:
    session, client = await open_session()
    answer = await client.post(body)
    assert (answer.status, answer.error["type"]) == (400, "invalid_request_error")
    assert words in answer.error["message"]
    assert server.asked == []
    assert (await client.say("still there?")).status == 200
    assert len((await session.close()).calls) == 1


async def test_another_model_is_refused(server: ModelServer, open_session: Open) -> None:
    _, client = await open_session()
    answer = await client.post({"model": "gpt-expensive", "messages": [user("x")]})
    assert (answer.status, answer.error["code"]) == (404, "model_not_found")
    assert server.asked == []


@pytest.mark.parametrize(
    "path",
    [
        "/completions",
        "/messages/batches",
        "/responses/resp_1",
        "/../admin",
        "/sessions",
        "/chat/completions/",
        "/%00",
    ],
)
async def test_nothing_else_is_served(open_session: Open, path: str) -> None:
    _, client = await open_session()
    answer = await client.post({}, path=path)
    assert answer.status == 404
    assert "there is no" in answer.error["message"]


async def test_wrong_methods_and_encodings_are_refused(open_session: Open) -> None:
    _, client = await open_session()
    url, key = client.endpoint.base_url, {"Authorization": f"Bearer {client.endpoint.api_key}"}
    async with client.http.get(f"{url}/chat/completions", headers=key) as got:
        assert got.status == 405
    headers = {**key, "Content-Encoding": "gzip"}
    async with client.http.post(f"{url}/chat/completions", data=b"x", headers=headers) as sent:
        assert sent.status == 415


@pytest.mark.parametrize("key", ["", "sk-orchard-wrong", "vendor-secret-key", "é" * 9, "x" * 5000])
async def test_a_wrong_key_opens_nothing(server: ModelServer, open_session: Open, key: str) -> None:
    _, client = await open_session()
    answer = await client.post({"model": "m", "messages": [user("x")]}, key=key)
    assert (answer.status, answer.error["code"]) == (401, "invalid_api_key")
    assert server.asked == []


async def test_sessions_cannot_see_one_another(server: ModelServer, open_session: Open) -> None:
    (one, first), (other, second) = await open_session(), await open_session()
    assert first.endpoint.api_key != second.endpoint.api_key
    await first.say("mine")
    await second.say("yours")
    trajectory = await one.close()
    assert "yours" not in trajectory.model_dump_json()
    assert (await first.say("again")).status == 401
    assert (await second.say("again")).status == 200
    assert len((await other.close()).calls) == 2
    assert len((await one.close()).calls) == 1


async def test_the_models_list_names_one_model(open_session: Open) -> None:
    _, client = await open_session()
    headers = {"Authorization": f"Bearer {client.endpoint.api_key}"}
    async with client.http.get(f"{client.endpoint.base_url}/models", headers=headers) as answer:
        assert [model["id"] for model in (await answer.json())["data"]] == ["m"]


async def test_a_body_over_the_limit_is_refused(server: ModelServer, open_session: Open) -> None:
    _, client = await open_session()
    big = {"model": "m", "messages": [user("x" * (9 << 20))]}
    answer = await client.post(big)
    assert (answer.status, answer.error["code"]) == (413, "too_large")
    assert (await client.say("small")).status == 200
    chunked = await _raw(
        client, b"Transfer-Encoding: chunked\r\n\r\n" + (b"100000\r\n" + b"x" * 0x100000 + b"\r\n") * 9
    )
    assert chunked.startswith(b"HTTP/1.1 413")


async def test_a_client_that_reads_only_after_it_wrote_is_told_too(open_session: Open) -> None:
    """As most clients do; to close while it writes would reset its connection before it reads a word."""
    _, client = await open_session()
    body = json.dumps({"model": "m", "messages": [user("x" * (40 << 20))]}).encode()
    request = urllib.request.Request(
        f"{client.endpoint.base_url}/chat/completions",
        data=body,
        headers={"Authorization": f"Bearer {client.endpoint.api_key}"},
    )

    def post() -> tuple[int, bytes]:
        try:
            with urllib.request.urlopen(request) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    status, told = await asyncio.to_thread(post)
    assert (status, json.loads(told)["error"]["code"]) == (413, "too_large")
    assert (await client.say("small")).status == 200


async def test_a_session_has_64_requests_open_at_most(server: ModelServer, open_session: Open) -> None:
    """Counted before their bodies are read; another session is not concerned."""
    session, client = await open_session()
    left = asyncio.Event()
    server.otherwise = stalls(left)
    calls = [asyncio.ensure_future(client.say(f"{at}")) for at in range(63)]
    unfinished = asyncio.ensure_future(_raw(client, b"Content-Length: 100\r\n\r\n", until=2))
    while session.requests < 64 or server.in_flight < 63:
        await asyncio.sleep(0.01)
    refused = await client.say("one more")
    assert (refused.status, refused.error["code"]) == (429, "too_many_open_calls")
    assert refused.headers["x-should-retry"] == "false"
    server.otherwise = says()
    assert (await (await open_session())[1].say("another session")).status == 200
    trajectory = await session.close()
    assert len(trajectory.calls) == 63
    assert {answer.status for answer in await asyncio.gather(*calls)} == {403}
    unfinished.cancel()


async def test_calls_under_way_count_against_the_budget_of_calls(
    server: ModelServer, open_session: Open
) -> None:
    session, client = await open_session(limits=Limits(calls=3))
    answers = await asyncio.gather(*(client.say(f"{at}") for at in range(10)))
    assert sorted(answer.status for answer in answers) == [200] * 3 + [403] * 7
    assert len(server.asked) == len((await session.close()).calls) == 3


async def test_headers_without_end_are_refused(open_session: Open) -> None:
    _, client = await open_session()
    answer = await _raw(client, b"X-Long: " + b"a" * (2 << 20))
    assert answer.startswith(b"HTTP/1.1 431")
    assert (await client.say("still there?")).status == 200


@pytest.mark.parametrize(
    "raw",
    [
        b"nonsense\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: x\r\n\r\n",
        b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"GET \xff\xfe HTTP/1.1\r\nHost: x\r\n\r\n",
        b"CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ],
)
async def test_what_is_not_http_is_answered_in_json(open_session: Open, raw: bytes) -> None:
    _, client = await open_session()
    answer = await _raw(client, raw, alone=True)
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith((b"HTTP/1.1 400", b"HTTP/1.1 404"))
    assert set(json.loads(body)) == {"error"}


async def test_requests_sent_at_once_on_one_connection_are_answered_in_order(
    server: ModelServer, open_session: Open
) -> None:
    _, client = await open_session()
    bodies = [json.dumps({"model": "m", "messages": [user(str(at))]}).encode() for at in range(3)]
    key = client.endpoint.api_key.encode()
    raw = b"".join(
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %b\r\n" % key
        + b"Content-Length: %d\r\n\r\n" % len(body)
        + body
        for body in bodies
    )
    answer = await _raw(client, raw, alone=True, until=3)
    assert answer.count(b"HTTP/1.1 200") == 3
    assert [asked.body["messages"][0]["content"] for asked in server.asked] == ["0", "1", "2"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
KNOWN = ("model", "messages", "stream", "tools", "n", "stream_options", "temperature")
FIELDS = st.sampled_from(KNOWN)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    body=st.binary(max_size=200)
    | st.dictionaries(FIELDS, JSON, max_size=5).map(lambda v: json.dumps(v).encode())
)
def test_random_bodies_are_read_or_refused_and_nothing_else(body: bytes) -> None:
    try:
        request = ChatCodec().request(body, Conversation())
    except JsonFault:
        return
    assert json.loads(request.body)["model"] == request.model


@settings(max_examples=200, deadline=None)
@given(value=JSON, indent=st.sampled_from([None, 1]), escaped=st.booleans())
def test_text_made_ascii_means_the_same(value: object, indent: int | None, escaped: bool) -> None:
    text = json.dumps(value, ensure_ascii=escaped, indent=indent)
    assert ascii_text(text).isascii()
    assert json.loads(ascii_text(text)) == value
    assert loads(text.encode("utf-8", "surrogatepass")) == value


@settings(max_examples=100, deadline=None)
@given(
    threads=st.lists(st.lists(st.text(max_size=5), min_size=1, max_size=5), min_size=2, max_size=5),
    separators=st.lists(st.sampled_from([(",", ":"), (", ", ": "), (" , ", " : ")]), min_size=5, max_size=5),
)
def test_what_earlier_requests_shared_never_changes_what_is_read(
    threads: list[list[str]], separators: list[tuple[str, str]]
) -> None:
    conversation = Conversation()
    for texts, pair in zip(threads, separators, strict=False):
        body = json.dumps(
            {"messages": [user(text) for text in texts], "model": "m"}, separators=pair
        ).encode()
        warm, cold = ChatCodec().request(body, conversation), ChatCodec().request(body, Conversation())
        assert (list(warm.heard.sent), warm.params) == (list(cold.heard.sent), cold.params)
        conversation.advance(_head(len(conversation.heads), warm.heard.sent), warm.heard)


ROLES = st.sampled_from(["user", "tool", "assistant", "system"]) | st.text()
TEXTS = st.text(st.characters(exclude_categories=()), max_size=12)
MESSAGES = st.lists(
    st.dictionaries(TEXTS, JSON | TEXTS, max_size=3).flatmap(
        lambda fields: ROLES.map(lambda role: {**fields, "role": role, "content": "x"})
    ),
    min_size=1,
    max_size=4,
)


@settings(max_examples=60, deadline=None)
@given(messages=MESSAGES, extra=st.dictionaries(st.text(max_size=6), JSON, max_size=3), stream=st.booleans())
def test_whatever_a_harness_sends_is_recorded_as_it_was(
    messages: list[dict[str, object]], extra: dict[str, object], stream: bool
) -> None:
    async def check() -> None:
        async with Gateway() as gateway, aiohttp.ClientSession() as http:
            session = await gateway.open_session(FakeModel(), SessionContext())
            client = Client(http, session.endpoint)
            fields = {key: value for key, value in extra.items() if key not in KNOWN}
            assert (await client.chat(messages, stream=stream, **fields)).status == 200
            trajectory = await session.close()
        (call,) = trajectory.calls
        again = trajectory.model_validate_json(trajectory.model_dump_json())
        assert [json.loads(again.messages[key].raw) for key in call.messages.added] == messages
        assert json.loads(call.params) == {"model": "fake", "stream": stream, **fields}

    asyncio.run(check())


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=120))
def test_random_bytes_on_the_wire_get_json_or_silence(raw: bytes) -> None:
    async def check() -> None:
        async with Gateway() as gateway, aiohttp.ClientSession() as http:
            session = await gateway.open_session(FakeModel(), SessionContext())
            client = Client(http, session.endpoint)
            answer = await _raw(client, raw, alone=True, patience=0.05)
            _, found, body = answer.partition(b"\r\n\r\n")
            assert not found or "error" in json.loads(body)
            assert (await client.say("still there?")).status == 200

    asyncio.run(check())


async def test_the_gateway_leaves_signals_and_logging_alone() -> None:
    before = (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM), list(logging.root.handlers))
    levels = {name: logging.getLogger(name).level for name in ("uvicorn", "uvicorn.error", "uvicorn.access")}
    async with Gateway():
        during = (
            signal.getsignal(signal.SIGINT),
            signal.getsignal(signal.SIGTERM),
            list(logging.root.handlers),
        )
    assert before == during
    assert levels == {name: logging.getLogger(name).level for name in levels}


async def test_a_gateway_that_is_not_entered_has_no_address() -> None:
    with pytest.raises(ConfigError, match="async with"):
        _ = Gateway().address


def _head(index: int, sent: Sequence[str]) -> Head:
    return Head(index=index, sent=sent, answer="{}")


async def _raw(
    client: Client, data: bytes, *, alone: bool = False, until: int = 1, patience: float = 10.0
) -> bytes:
    """Bytes sent as they are (after a request line and key unless `alone`), and what comes back."""
    host, port = client.endpoint.base_url.removeprefix("http://").removesuffix("/v1").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    head = f"POST /v1/chat/completions HTTP/1.1\r\nAuthorization: Bearer {client.endpoint.api_key}\r\n"
    writer.write(data if alone else head.encode() + data)
    answer = b""
    try:
        async with asyncio.timeout(patience):
            while answer.count(b"HTTP/1.1 ") < until or not answer.endswith(b"}"):
                piece = await reader.read(1 << 16)
                if not piece:
                    break
                answer += piece
    except (TimeoutError, ConnectionError):
        pass
    writer.close()
    return answer
