"""Streamed answers: passed on as they come, recorded as they would be whole."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

import aiohttp
import pytest

from orchard_core import Model, SessionContext, Trajectory, Usage
from orchard_core.gateway.chat.codec import ChatCodec
from orchard_core.gateway.openai import OpenAIModel
from orchard_core.gateway.scripted import Reply, ScriptedModel
from orchard_core.gateway.server import Gateway
from orchard_core.gateway.session import Session
from orchard_core.testing.fakes.model import FakeModel

from .client import Client, user
from .conftest import Open
from .model_server import ModelServer, chunk, completion, resets, sends, stalls, streams

USAGE = {"prompt_tokens": 10, "completion_tokens": 4, "total_tokens": 14}
COUNTS = {"id": "c", "object": "chat.completion.chunk", "choices": [], "usage": USAGE}
HELLO = (chunk({"role": "assistant", "content": "hel"}), chunk({"content": "lo"}), chunk({}, "stop"))


def recorded(trajectory: Trajectory, index: int = 0) -> dict[str, object]:
    """The answer's message of a call."""
    key = trajectory.calls[index].response
    assert key is not None
    message: dict[str, object] = json.loads(trajectory.messages[key].raw)
    return message


async def test_pieces_pass_and_the_whole_is_recorded(server: ModelServer, open_session: Open) -> None:
    server.plan = [streams(*HELLO, COUNTS)]
    session, client = await open_session()
    answer = await client.say("go", stream=True)
    assert answer.headers["content-type"] == "text/event-stream"
    assert answer.events == [*HELLO, "[DONE]"]
    trajectory = await session.close()
    (call,) = trajectory.calls
    assert call.streamed
    assert call.finish_reason == "stop"
    assert call.usage == Usage(input=10, output=4)
    assert call.timings.first_token_s is not None
    assert recorded(trajectory) == {"role": "assistant", "content": "hello"}


async def test_counts_come_only_to_a_harness_that_asked(server: ModelServer, open_session: Open) -> None:
    server.plan = [streams(*HELLO, COUNTS)]
    _, client = await open_session()
    answer = await client.say("go", stream=True, stream_options={"include_usage": True})
    assert answer.events == [*HELLO, COUNTS, "[DONE]"]


async def test_tool_calls_in_pieces_become_whole(server: ModelServer, open_session: Open) -> None:
    def call(index: int, arguments: str, **first: str) -> dict[str, object]:
        function = {"arguments": arguments, **({"name": first.pop("name")} if first else {})}
        return chunk({"tool_calls": [{"index": index, **first, "function": function}]})

    server.plan = [
        streams(
            chunk({"role": "assistant", "content": None, "reasoning_content": "hm"}),
            chunk({"reasoning_content": "m"}),
            call(0, "", id="a", type="function", name="bash"),
            call(0, '{"x": '),
            call(1, '{"y"', id="b", type="function", name="look"),
            call(0, '"1"}'),
            call(1, ":2}"),
            chunk({}, "tool_calls"),
        )
    ]
    session, client = await open_session()
    await client.say("go", stream=True)
    message = recorded(await session.close())
    assert message == {
        "role": "assistant",
        "content": None,
        "reasoning_content": "hmm",
        "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "bash", "arguments": '{"x": "1"}'}},
            {"id": "b", "type": "function", "function": {"name": "look", "arguments": '{"y":2}'}},
        ],
    }


async def test_events_cut_anywhere_are_read_alike(server: ModelServer, open_session: Open) -> None:
    text = b": comment\r\n\r\nevent: x\r\n"
    for piece in HELLO:
        text += b"data: " + json.dumps(piece).encode() + b"\r\n\r\n"
    server.plan = [streams(*(text[at : at + 7] for at in range(0, len(text), 7)))]
    session, client = await open_session()
    answer = await client.say("go", stream=True)
    assert answer.events == [*HELLO, "[DONE]"]
    assert recorded(await session.close())["content"] == "hello"


async def test_a_surrogate_pair_cut_between_pieces_is_whole_again(
    server: ModelServer, open_session: Open
) -> None:
    pieces = [
        b'data: {"choices":[{"index":0,"delta":{"content":"%b"}}]}\n\n' % half
        for half in (b"\\ud83d", b"\\ude00")
    ]
    server.plan = [streams(*pieces, chunk({}, "stop"))]
    session, client = await open_session()
    await client.say("go", stream=True)
    assert recorded(await session.close())["content"] == "😀"


async def test_the_first_piece_does_not_wait_for_the_last(server: ModelServer, open_session: Open) -> None:
    go_on = asyncio.Event()
    server.plan = [streams(*HELLO, pause=go_on)]
    session, client = await open_session()
    async with _stream(client) as response:
        first = await response.content.readuntil(b"\n\n")
        assert b"hel" in first
        go_on.set()
        assert b"[DONE]" in await response.content.read()
    assert recorded(await session.close())["content"] == "hello"


async def test_a_client_that_leaves_ends_the_upstream_call(server: ModelServer, open_session: Open) -> None:
    never = asyncio.Event()
    server.plan = [streams(*HELLO, pause=never)]
    session, client = await open_session()
    async with _stream(client) as response:
        await response.content.readuntil(b"\n\n")
        response.close()
    await _until(lambda: server.in_flight == 0)
    trajectory = await session.close()
    (call,) = trajectory.calls
    assert call.error is not None
    assert call.error.kind == "Cancelled"
    assert recorded(trajectory)["content"] == "hel"
    assert session.last_error is None


async def test_a_client_that_leaves_a_whole_call_ends_it_too(server: ModelServer, open_session: Open) -> None:
    left = asyncio.Event()
    server.plan = [stalls(left)]
    session, client = await open_session()
    pending = asyncio.create_task(client.say("go"))
    await _until(lambda: server.in_flight == 1)
    pending.cancel()
    await asyncio.wait_for(left.wait(), 10)
    await _until(lambda: len(session.trajectory().calls) == 1)
    (call,) = (await session.close()).calls
    assert call.error is not None
    assert call.error.kind == "Cancelled"


async def test_a_reader_that_stops_between_two_pieces_leaves_nothing_behind(
    server: ModelServer, open_session: Open
) -> None:
    never = asyncio.Event()
    server.plan = [streams(*HELLO, pause=never)]
    held: list[int] = []
    session: Session
    session, _ = await open_session(on_call=lambda call: held.append(session.slots.in_flight))
    body = json.dumps({"model": "m", "messages": [user("go")], "stream": True}).encode()
    request = ChatCodec().request(body, session.conversation)
    pieces = session.begin(request, ChatCodec()).pieces()
    assert b"hel" in await anext(pieces)
    await pieces.aclose()
    assert held == [0]
    await _until(lambda: server.in_flight == 0)
    trajectory = await session.close()
    assert trajectory.calls[0].error is not None
    assert recorded(trajectory)["content"] == "hel"


async def test_closing_the_session_ends_calls_in_flight(server: ModelServer, open_session: Open) -> None:
    left = asyncio.Event()
    server.plan = [stalls(left)]
    session, client = await open_session()
    pending = asyncio.create_task(client.say("go"))
    await _until(lambda: server.in_flight == 1)
    trajectory = await session.close()
    answer = await pending
    assert (answer.status, answer.error["code"]) == (403, "session_closed")
    await asyncio.wait_for(left.wait(), 10)
    (call,) = trajectory.calls
    assert call.error is not None
    assert call.error.kind == "Cancelled"
    assert (await client.say("more")).status == 401


@pytest.mark.parametrize(
    ("ending", "kind"),
    [
        (streams(*HELLO[:2], reset=True), "ModelUnavailable"),
        (streams(*HELLO[:2], done=True), "ModelReplyMalformed"),
        (streams(*HELLO[:2], b'data: {"choices": [{"ind', done=False), "ModelReplyMalformed"),
        (streams(*HELLO[:2], b"data: not json\n\n"), "ModelReplyMalformed"),
        (streams(*HELLO[:2], b"data: [1,2]\n\n"), "ModelReplyMalformed"),
        (streams(*HELLO[:2], b'data: {"choices": [7]}\n\n'), "ModelReplyMalformed"),
        (streams(*HELLO[:2], {"error": {"message": "engine died"}}), "ModelUnavailable"),
    ],
)
async def test_a_stream_that_breaks_after_its_beginning_is_never_repeated(
    server: ModelServer, open_session: Open, ending: object, kind: str
) -> None:
    server.plan = [ending]  # type: ignore[list-item]
    session, client = await open_session()
    answer = await client.say("go", stream=True)
    assert answer.status == 200
    assert answer.events[:2] == list(HELLO[:2])
    assert set(answer.events[-1]) == {"error"}
    assert len(server.asked) == 1
    trajectory = await session.close()
    (call,) = trajectory.calls
    assert call.error is not None
    assert call.error.kind == kind
    assert recorded(trajectory)["content"] == "hello"


async def test_a_stream_that_breaks_before_its_beginning_is_repeated(
    server: ModelServer, open_session: Open
) -> None:
    server.plan = [resets(), streams({"error": {"message": "busy"}}), streams(*HELLO)]
    session, client = await open_session(token_ids="off")
    answer = await client.say("go", stream=True)
    assert answer.events == [*HELLO, "[DONE]"]
    assert len((await session.close()).calls[0].retries) == 2


async def test_an_answer_that_is_no_stream_is_a_clear_error(server: ModelServer, open_session: Open) -> None:
    server.otherwise = sends(b"<html>login</html>", kind="text/html")
    _, client = await open_session()
    answer = await client.say("go", stream=True)
    assert answer.status == 502
    assert "text/html" in answer.error["message"]
    whole = await client.say("go")
    assert (whole.status, whole.error["code"]) == (502, "upstream_malformed")


async def test_a_model_that_answers_in_process_can_be_streamed(open_session: Open) -> None:
    session, client = await open_session(FakeModel(["hello there"]))
    answer = await client.say("go", stream=True)
    assert answer.events[-1] == "[DONE]"
    assert recorded(await session.close())["content"] == "hello there"


async def test_a_client_that_leaves_after_the_last_piece_has_a_whole_answer(
    server: ModelServer, open_session: Open
) -> None:
    never = asyncio.Event()
    server.plan = [streams(chunk({"content": "all"}, "stop"), COUNTS, pause=never)]
    session, client = await open_session()
    async with _stream(client) as response:
        await response.content.readuntil(b"\n\n")
        response.close()
    await _until(lambda: len(session.trajectory().calls) == 1)
    assert (await session.close()).calls[0].error is None


async def test_a_big_answer_to_a_slow_reader_is_whole(server: ModelServer, open_session: Open) -> None:
    big = completion("x" * (6 << 20))
    server.plan = [sends(json.dumps(big).encode())]
    _, client = await open_session()
    assert (await client.say("go")).json == big


def _stream(client: Client) -> aiohttp.client._RequestContextManager:
    headers = {"Authorization": f"Bearer {client.endpoint.api_key}"}
    body = {"model": "m", "messages": [user("go")], "stream": True}
    return client.http.post(f"{client.endpoint.base_url}/chat/completions", json=body, headers=headers)


async def _until(true: object) -> None:
    async with asyncio.timeout(10):
        while not true():  # type: ignore[operator]
            await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    "model",
    [
        FakeModel(["hello"]),
        ScriptedModel(
            [Reply(text="hello", prompt_tokens=(1, 2), completion_tokens=(3, 4), logprobs=(-0.5, -1))]
        ),
    ],
    ids=["fake", "scripted"],
)
async def test_a_stream_is_recorded_with_the_ids_that_its_model_tells(
    open_session: Open, model: Model
) -> None:
    streamed, client = await open_session(model)
    assert (await client.say("go", stream=True)).status == 200
    whole, other = await open_session(model)
    assert (await other.say("go")).status == 200
    (call,), (same,) = (await streamed.close()).calls, (await whole.close()).calls
    assert call.completion_tokens
    for name in ("prompt_tokens", "completion_tokens", "logprobs"):
        assert getattr(call, name) == getattr(same, name)


async def test_a_client_that_takes_nothing_is_cut_off(
    server: ModelServer, connect: Callable[..., OpenAIModel]
) -> None:
    """Even with more to send than the connection's buffers hold, its call and the upstream's end."""
    async with Gateway(stall_s=0.2) as gateway:
        session = await gateway.open_session(connect(), SessionContext())
        server.plan = [streams(*[chunk({"content": "x" * 65536})] * 2000)]
        reader, writer = await asyncio.open_connection(gateway.address.host, gateway.address.port)
        body = json.dumps({"model": "m", "messages": [user("go")], "stream": True})
        head = f"POST /v1/chat/completions HTTP/1.1\r\nAuthorization: Bearer {session.endpoint.api_key}\r\n"
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode())
        reader._transport.pause_reading()  # type: ignore[attr-defined]
        async with asyncio.timeout(20):
            while not session.trajectory().calls or session.requests or server.in_flight:
                await asyncio.sleep(0.02)
        (call,) = session.trajectory().calls
        assert call.error is not None
        assert call.error.kind == "Cancelled"
        writer.close()
