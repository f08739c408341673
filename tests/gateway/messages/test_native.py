"""Requests in messages to a server that speaks it: untouched there and back, and recorded."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from orchard_core import ConfigError, Dialect, Price, Usage
from orchard_core.gateway.anthropic import AnthropicConfig, AnthropicModel
from orchard_core.gateway.openai import OpenAIConfig, OpenAIModel
from orchard_core.gateway.session import Session
from orchard_core.plugins.lookup import load_model

from ..client import Answer, Client
from ..conftest import Open
from ..model_server import ModelServer, fails, sends, streams

ANSWER = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [{"type": "text", "text": "hello"}, {"type": "future", "x": [1.0]}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {
        "input_tokens": 3, "cache_read_input_tokens": 20, "cache_creation_input_tokens": 7,
        "output_tokens": 5,
    },
}  # fmt: skip
EVENTS: list[dict[str, Any]] = [
    {"type": "message_start", "message": {**ANSWER, "content": [], "stop_reason": None,
                                          "usage": {"input_tokens": 9, "output_tokens": 1}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
    {"type": "ping"},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "sig"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "content_block_start", "index": 1,
     "content_block": {"type": "tool_use", "id": "t1", "name": "run", "input": {}}},
    {"type": "content_block_delta", "index": 1,
     "delta": {"type": "input_json_delta", "partial_json": '{"n": '}},
    {"type": "content_block_delta", "index": 1,
     "delta": {"type": "input_json_delta", "partial_json": "1}"}},
    {"type": "content_block_stop", "index": 1},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 30}},
    {"type": "message_stop"},
]  # fmt: skip
BODY = (
    b'{ "model":"m", "max_tokens":5,\n "system":[{"type":"text","text":"S"}], '
    b'"messages": [{"role":"user","content":"go"} ], "future": 1.0 }'
)


@pytest.fixture
def anthropic_model(server: ModelServer) -> AnthropicModel:
    url = server.url.removesuffix("/v1")
    config = {
        "model": "m",
        "base_url": url,
        "api_key": "vendor-secret-key",
        "price": Price(input=1, output=2),
    }
    return AnthropicModel(AnthropicConfig.model_validate(config))


async def send(client: Client, body: bytes, *, path: str = "/messages", **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    sent = {"x-api-key": client.endpoint.api_key, **named}
    async with client.http.post(client.endpoint.base_url + path, data=body, headers=sent) as response:
        return Answer(response.status, await response.read(), response.headers)


async def test_bodies_pass_untouched_and_are_recorded(
    server: ModelServer, open_session: Open, anthropic_model: AnthropicModel
) -> None:
    exact = json.dumps(ANSWER, indent=1).encode()
    server.plan = [sends(exact)]
    session, client = await open_session(anthropic_model)
    answer = await send(client, BODY, path="/messages?beta=true")
    assert answer.raw == exact
    (asked,) = server.asked
    assert (asked.raw, asked.request.path) == (BODY, "/v1/messages")
    trajectory = await session.close()
    (call,) = trajectory.calls
    assert (call.dialect, call.wire, call.finish_reason) == (Dialect.MESSAGES, None, "end_turn")
    assert call.usage == Usage(input=3, cache_read=20, cache_write=7, output=5)
    assert call.cost_usd == pytest.approx((30 * 1 + 5 * 2) / 1e6)
    said = [json.loads(trajectory.messages[key].raw) for key in call.messages.added]
    assert [message["role"] for message in said] == ["system", "user"]
    assert json.loads(trajectory.messages[call.response or ""].raw)["content"] == ANSWER["content"]
    assert json.loads(call.params) == {"model": "m", "max_tokens": 5, "future": 1.0}


async def test_a_stream_passes_event_by_event(
    server: ModelServer, open_session: Open, anthropic_model: AnthropicModel
) -> None:
    named = [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in EVENTS]
    server.plan = [streams(*named, done=False)]
    session, client = await open_session(anthropic_model)
    answer = await send(client, BODY.replace(b'"max', b'"stream":true,"max'))
    assert answer.raw.split(b"\n\n")[:-2] == [event.removesuffix(b"\n\n") for event in named[:-1]]
    assert answer.raw.endswith(b'event: message_stop\ndata: {"type":"message_stop"}\n\n')
    trajectory = await session.close()
    (call,) = trajectory.calls
    assert (call.finish_reason, call.usage) == ("tool_use", Usage(input=9, output=30))
    assert json.loads(trajectory.messages[call.response or ""].raw)["content"] == [
        {"type": "thinking", "thinking": "hm", "signature": "sig"},
        {"type": "tool_use", "id": "t1", "name": "run", "input": {"n": 1}},
    ]


async def test_the_dialect_s_headers_reach_the_server_and_no_other(
    server: ModelServer, open_session: Open, anthropic_model: AnthropicModel
) -> None:
    server.otherwise = sends(json.dumps(ANSWER).encode())
    _, client = await open_session(anthropic_model)
    await send(client, BODY)
    await send(client, BODY, anthropic_version="2024-01-01", anthropic_beta="a,b", x_secret="mine")
    first, second = (asked.request.headers for asked in server.asked)
    assert (first["x-api-key"], first["anthropic-version"]) == ("vendor-secret-key", "2023-06-01")
    assert "anthropic-beta" not in first
    assert (second["anthropic-version"], second["anthropic-beta"]) == ("2024-01-01", "a,b")
    assert second.getall("x-api-key") == ["vendor-secret-key"]
    assert "x-secret" not in second
    assert client.endpoint.api_key not in str([*first.values(), *second.values()])


async def test_chat_goes_to_the_same_server_by_its_chat_url(
    server: ModelServer, open_session: Open, anthropic_model: AnthropicModel
) -> None:
    session, client = await open_session(anthropic_model)
    assert (await client.say("go")).message["content"] == "hello"
    (asked,) = server.asked
    assert asked.request.path == "/v1/chat/completions"
    assert asked.request.headers["authorization"] == "Bearer vendor-secret-key"
    assert asked.body.keys() == {"model", "messages"}
    assert (await session.close()).calls[0].dialect is Dialect.CHAT


async def test_a_conversation_is_stored_as_a_change_to_the_call_before(
    server: ModelServer, open_session: Open, anthropic_model: AnthropicModel
) -> None:
    server.otherwise = sends(json.dumps(ANSWER).encode())
    session, client = await open_session(anthropic_model)
    await send(client, BODY)
    answer, more = b'{"role":"assistant","content":"hello"}', b'{"role":"user","content":"on"}'
    more = b'{"role":"user","content":"go"}, ' + answer + b"," + more
    await send(client, BODY.replace(b'{"role":"user","content":"go"} ', more))
    first, second = (await session.close()).calls
    assert (second.messages.base, second.messages.keep, len(second.messages.added)) == (first.index, 2, 2)


async def test_the_server_s_own_errors_pass_word_for_word(
    server: ModelServer, open_session: Open, anthropic_model: AnthropicModel
) -> None:
    words = {
        "type": "error",
        "error": {"type": "invalid_request_error", "message": "no", "x": 1},
        "request_id": "r",
    }
    server.plan = [fails(400, words)]
    _, client = await open_session(anthropic_model)
    answer = await send(client, BODY)
    assert (answer.status, answer.json) == (400, words)
    assert answer.headers["x-should-retry"] == "false"


async def test_an_overloaded_server_is_asked_again(
    server: ModelServer, open_session: Open, anthropic_model: AnthropicModel
) -> None:
    server.plan = [fails(529, {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}})]
    server.otherwise = sends(json.dumps(ANSWER).encode())
    session, client = await open_session(anthropic_model)
    assert (await send(client, BODY)).status == 200
    assert len((await session.close()).calls[0].retries) == 1


@pytest.mark.parametrize(
    "cut",
    [
        EVENTS[:4],
        [*EVENTS[:3], {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}],
        [*EVENTS[:2], {"no": "type"}],
        [
            *EVENTS[:2],
            {"type": "content_block_delta", "index": 7, "delta": {"type": "text_delta", "text": "x"}},
        ],
        [*EVENTS[:2], {"type": "message_delta"}],
        [EVENTS[0], {"type": "content_block_start", "index": "x", "content_block": 3}],
    ],
)
async def test_a_stream_that_breaks_ends_with_an_error_event(
    server: ModelServer, open_session: Open, anthropic_model: AnthropicModel, cut: list[dict[str, Any]]
) -> None:
    server.plan = [streams(*cut, done=False)]
    session, client = await open_session(anthropic_model)
    answer = await send(client, BODY.replace(b'"max', b'"stream":true,"max'))
    last = answer.raw.decode().removesuffix("\n\n").rsplit("\n\n", 1)[-1]
    assert last.startswith("event: error\ndata: ")
    assert json.loads(last.partition("data: ")[2])["error"]["type"] == "api_error"
    (call,) = (await session.close()).calls
    assert call.error is not None


async def test_tokens_are_counted_by_the_server_where_it_counts(
    server: ModelServer,
    open_session: Open,
    anthropic_model: AnthropicModel,
    connect: Callable[..., OpenAIModel],
) -> None:
    server.plan = [sends(b'{"input_tokens":1234}'), fails(404), fails(401)]
    session, client = await open_session(anthropic_model)
    path = "/messages/count_tokens"
    assert (await send(client, BODY, path=path)).json == {"input_tokens": 1234}
    assert (server.asked[0].raw, server.asked[0].request.path) == (BODY, "/v1/messages/count_tokens")
    estimate = (await send(client, BODY, path=path)).json["input_tokens"]
    assert 5 < estimate < 30
    assert (await send(client, BODY, path=path)).status == 401
    assert (await send(client, BODY.replace(b'"m"', b'"other"'), path=path)).status == 404
    assert (await send(client, b"{", path=path)).status == 400
    assert (await session.close()).calls == ()


async def test_a_picture_is_counted_as_a_picture_and_not_by_its_bytes(open_session: Open) -> None:
    _, client = await open_session()
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A" * 400_000}}
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": [image]}]}).encode()
    counted = (await send(client, body, path="/messages/count_tokens")).json["input_tokens"]
    assert 1600 <= counted < 1700


def test_a_key_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    with pytest.raises(ConfigError, match="needs a key") as raised:
        load_model("anthropic:claude-sonnet-4-5")
    assert "ANTHROPIC_API_KEY" in raised.value.hint


def test_keys_are_not_shown() -> None:
    config = AnthropicConfig(model="m", api_key="sk-secret", headers={"anthropic-beta": "hidden"})  # type: ignore[arg-type, dict-item]
    shown = repr(config) + config.model_dump_json()
    assert "secret" not in shown
    assert "hidden" not in shown


@pytest.mark.parametrize(
    ("spoken", "told"), [(None, {Dialect.CHAT}), ({"chat", "messages"}, {Dialect.CHAT, Dialect.MESSAGES})]
)
async def test_a_compatible_server_speaks_what_its_options_say(
    server: ModelServer,
    open_session: Open,
    connect: Callable[..., OpenAIModel],
    spoken: Any,
    told: set[Dialect],
) -> None:
    chat_answer = server.otherwise
    native = sends(json.dumps(ANSWER).encode())
    server.plan = [native if spoken else chat_answer]
    session, client = await open_session(connect(dialects=spoken))
    assert session.dialects == told
    assert (await send(client, BODY)).json["content"][0] == {"type": "text", "text": "hello"}
    assert server.asked[0].request.path == ("/v1/messages" if spoken else "/v1/chat/completions")


async def test_openai_itself_speaks_responses_too() -> None:
    model = OpenAIModel(OpenAIConfig(model="gpt-5", base_url="https://api.openai.com/v1", api_key="x"))  # type: ignore[arg-type]
    assert model._upstream.dialects == {Dialect.CHAT, Dialect.RESPONSES}
    await model.close()


async def test_a_model_of_one_other_dialect_refuses_what_cannot_be_put_into_it(
    server: ModelServer, open_session: Open, connect: Callable[..., OpenAIModel]
) -> None:
    session, client = await open_session(connect(dialects={"messages"}))
    answer = await client.say("go")
    assert (answer.status, answer.error["code"]) == (400, "dialect_unsupported")
    assert "speaks messages" in answer.error["message"]
    assert server.asked == []
    assert (await session.close()).calls == ()


async def test_two_sessions_of_one_model_share_nothing(
    server: ModelServer, open_session: Open, anthropic_model: AnthropicModel
) -> None:
    server.otherwise = sends(json.dumps(ANSWER).encode())
    made: list[tuple[Session, Client]] = [await open_session(anthropic_model) for _ in range(2)]
    await asyncio.gather(
        *(
            send(client, BODY.replace(b'"go"', f'"{word}"'.encode()))
            for (_, client), word in zip(made, ("mine", "yours"), strict=True)
        )
    )
    first, second = [(await session.close()).model_dump_json() for session, _ in made]
    assert "mine" in first
    assert "yours" not in first
    assert "mine" not in second
