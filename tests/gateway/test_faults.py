"""Upstreams that misbehave: repeats, pauses, time-outs, and never a hang (fault 25)."""

from __future__ import annotations

import asyncio
import gc
import random
import weakref
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from orchard_core import Model, SessionContext
from orchard_core.gateway.openai_faults import retry_after
from orchard_core.gateway.retry import RetryPolicy
from orchard_core.gateway.server import Gateway
from orchard_core.gateway.slots import Slots
from orchard_core.testing.fakes.model import FakeModel
from orchard_core.testing.fakes.reply import FakeReply

from .client import Client
from .conftest import Open
from .model_server import ModelServer, fails, resets, says, sends, stalls


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 529])
async def test_a_failure_that_may_pass_is_repeated(
    server: ModelServer, open_session: Open, status: int
) -> None:
    server.plan = [fails(status), fails(status)]
    session, client = await open_session()
    answer = await client.say("go")
    assert answer.message["content"] == "hello"
    (call,) = (await session.close()).calls
    assert [str(status) in retry.reason for retry in call.retries] == [True, True]
    assert session.last_error is None


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 413, 422, 501])
async def test_a_refusal_is_not_repeated(server: ModelServer, open_session: Open, status: int) -> None:
    server.otherwise = fails(status)
    _, client = await open_session(token_ids="off")
    answer = await client.say("go")
    assert answer.status == (status if status < 500 else 502)
    assert len(server.asked) == 1


async def test_a_used_up_quota_is_not_repeated(server: ModelServer, open_session: Open) -> None:
    server.otherwise = fails(429, {"error": {"message": "pay", "code": "insufficient_quota"}})
    _, client = await open_session()
    assert (await client.say("go")).status == 429
    assert len(server.asked) == 1


async def test_repeats_are_bounded_and_the_client_is_told_not_to_repeat(
    server: ModelServer, open_session: Open
) -> None:
    server.otherwise = fails(503)
    session, client = await open_session()
    answer = await client.say("go")
    assert (answer.status, answer.error["code"]) == (502, "upstream_unavailable")
    assert answer.headers["x-should-retry"] == "false"
    assert len(server.asked) == 4
    assert type(session.last_error).__name__ == "ModelUnavailable"
    (call,) = (await session.close()).calls
    assert len(call.retries) == 3


async def test_fault_25_retry_after_is_honoured_and_not_charged(
    server: ModelServer, open_session: Open
) -> None:
    server.plan = [fails(429, retry_after="0.3")]
    session, client = await open_session()
    assert (await client.say("go")).status == 200
    (call,) = (await session.close()).calls
    assert call.retries[0].waited_s >= 0.3
    assert call.timings.waited_s >= 0.3
    assert session.waited_s >= 0.3
    assert call.timings.total_s - call.timings.waited_s < call.timings.total_s


async def test_fault_25_an_absurd_retry_after_gives_up_at_once(
    server: ModelServer, open_session: Open
) -> None:
    server.otherwise = fails(429, retry_after="86400")
    session, client = await open_session()
    answer = await client.say("go")
    assert (answer.status, len(server.asked)) == (429, 1)
    assert type(session.last_error).__name__ == "ModelRateLimited"


def test_fault_25_retry_after_is_read_as_seconds_and_as_a_date() -> None:
    now = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert retry_after("7", now) == 7.0
    assert retry_after(format_datetime(now + timedelta(seconds=9), usegmt=True), now) == 9.0
    assert retry_after(format_datetime(now - timedelta(hours=1), usegmt=True), now) == 0.0
    for nonsense in ("soon", "nan", "inf", "", None):
        assert retry_after(nonsense, now) is None


def test_fault_25_pauses_are_jittered_over_the_whole_interval_and_grow() -> None:
    policy = RetryPolicy(attempts=10, base_s=1.0, cap_s=8.0, rng=random.Random(1))
    for failed, bound in ((1, 1.0), (2, 2.0), (4, 8.0), (9, 8.0)):
        pauses = [policy.pause(failed, None) or 0.0 for _ in range(500)]
        assert 0.0 <= min(pauses) < 0.1 * bound
        assert 0.9 * bound < max(pauses) <= bound
    assert policy.pause(10, None) is None
    assert (policy.pause(1, 5.0) or 0.0) >= 5.0


async def test_fault_25_a_rate_limit_leaves_fewer_in_flight_then_more_again() -> None:
    slots = Slots(16)
    for _ in range(16):
        await slots.acquire()
    slots.throttled(started=float("inf"), asked_s=None)
    assert slots.bound == 8
    for _ in range(16):
        slots.release()
    bounds = []
    for _ in range(200):
        await slots.acquire()
        slots.release()
        slots.succeeded()
        bounds.append(slots.bound)
    assert bounds == sorted(bounds)
    assert bounds[7] == pytest.approx(9, abs=0.1)
    assert bounds[-1] == 16


async def test_fault_25_one_storm_is_one_cut() -> None:
    slots = Slots(None)
    for _ in range(32):
        await slots.acquire()
    for _ in range(32):
        slots.throttled(started=0.0 if slots.bound < 32 else float("inf"), asked_s=None)
    assert slots.bound == 16


async def test_fault_25_a_storm_of_rate_limits_ends_with_every_call_answered(
    server: ModelServer, open_session: Open
) -> None:
    async def limited(asked: object) -> object:
        if server.in_flight > 4:
            return await fails(429)(asked)  # type: ignore[arg-type]
        await asyncio.sleep(0.01)
        return await says()(asked)  # type: ignore[arg-type]

    server.otherwise = limited  # type: ignore[assignment]
    async with Gateway(retry=RetryPolicy(attempts=50, base_s=0.02, cap_s=0.1)) as gateway:
        _, client = await open_session(concurrency=40)
        session = await gateway.open_session(_model(server, concurrency=40), SessionContext())
        mine = Client(client.http, session.endpoint)
        answers = await asyncio.gather(*(mine.say(f"call {at}") for at in range(60)))
    assert {answer.status for answer in answers} == {200}


async def test_the_models_concurrency_bounds_all_its_sessions(
    server: ModelServer, gateway: Gateway, open_session: Open
) -> None:
    async def slowly(asked: object) -> object:
        await asyncio.sleep(0.02)
        return await says()(asked)  # type: ignore[arg-type]

    server.otherwise = slowly  # type: ignore[assignment]
    _, client = await open_session()
    model = _model(server, concurrency=3)
    sessions = [await gateway.open_session(model, SessionContext()) for _ in range(4)]
    clients = [Client(client.http, session.endpoint) for session in sessions]
    await asyncio.gather(*(one.say(f"{at}") for one in clients for at in range(4)))
    assert server.most_in_flight == 3
    assert sum(session.waited_s for session in sessions) > 0


async def test_a_cancelled_wait_gives_its_slot_to_the_next() -> None:
    slots = Slots(1)
    await slots.acquire()
    first, second = (asyncio.create_task(slots.acquire()) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.sleep(0)
    slots.release()
    await asyncio.wait_for(second, 5)
    assert slots.in_flight == 1


async def test_fault_25_a_server_that_stalls_is_a_time_out(server: ModelServer, open_session: Open) -> None:
    left = asyncio.Event()
    server.otherwise = stalls(left)
    session, client = await open_session(timeout_s=0.2)
    answer = await client.say("go")
    assert (answer.status, answer.error["code"]) == (504, "upstream_timeout")
    assert "0.2 s" in answer.error["message"]
    await asyncio.wait_for(left.wait(), 10)
    (call,) = (await session.close()).calls
    assert call.error is not None
    assert call.error.kind == "ModelTimeout"
    assert len(server.asked) == 1


async def test_fault_25_a_plugin_that_never_answers_is_a_time_out(open_session: Open) -> None:
    class Deaf(FakeModel):
        """Ignores its time limit."""

    model = Deaf(otherwise=FakeReply(delay_s=3600))
    async with Gateway(call_timeout_s=0.2) as gateway:
        session = await gateway.open_session(model, SessionContext())
        _, other = await open_session(FakeModel())
        answer = await Client(other.http, session.endpoint).say("go")
    assert (answer.status, answer.error["code"]) == (504, "upstream_timeout")


async def test_a_plugin_that_raises_nonsense_is_a_recorded_error(open_session: Open) -> None:
    def broken(request: object) -> FakeReply:
        raise KeyError("bug")

    session, client = await open_session(FakeModel(otherwise=broken))
    answer = await client.say("go")
    assert answer.status == 502
    assert "KeyError" in answer.error["message"]
    (call,) = (await session.close()).calls
    assert call.error is not None


async def test_a_reset_connection_is_repeated(server: ModelServer, open_session: Open) -> None:
    server.plan = [resets(), resets()]
    _, client = await open_session()
    assert (await client.say("go")).status == 200
    assert len(server.asked) == 3


async def test_a_server_that_is_not_there_is_a_clear_error(open_session: Open) -> None:
    _, client = await open_session(base_url="http://127.0.0.1:9/v1")
    answer = await client.say("go")
    assert (answer.status, answer.error["code"]) == (502, "upstream_unavailable")
    assert "127.0.0.1:9" in answer.error["message"]
    assert "hint" in answer.error["message"]


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{", b"[]", b"null", b"{}", b'{"choices":[]}', b'{"choices":[{}]}', b'{"choices":{}}',
        b'{"choices":[{"message":null}]}', b"\xff\xfe", b"[" * 100_000, b'{"choices":[NaN]}', b"<html>",
    ],
)  # fmt: skip
async def test_an_answer_that_is_no_completion_is_a_clear_error(
    server: ModelServer, open_session: Open, body: bytes
) -> None:
    server.otherwise = sends(body)
    session, client = await open_session()
    answer = await client.say("go")
    assert (answer.status, answer.error["code"]) == (502, "upstream_malformed")
    (call,) = (await session.close()).calls
    assert call.error is not None
    assert call.error.kind == "ModelReplyMalformed"


@pytest.mark.parametrize(
    "raw",
    [
        b"not http at all\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
        b"",
    ],
)
async def test_a_server_that_breaks_http_is_a_clear_error(open_session: Open, raw: bytes) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(raw)
        await writer.drain()
        writer.close()

    listener = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    _, client = await open_session(base_url=f"http://127.0.0.1:{port}/v1")
    answer = await client.say("go")
    assert answer.status == 502
    assert answer.error["code"].startswith("upstream_")
    listener.close()


async def test_a_server_without_lengths_is_read_to_its_end(open_session: Open) -> None:
    body = b'{"choices":[{"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]}'

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.0 200 OK\r\n\r\n" + body)
        await writer.drain()
        writer.close()

    listener = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    _, client = await open_session(base_url=f"http://127.0.0.1:{port}/v1", token_ids="off")
    assert (await client.say("go")).message["content"] == "hi"
    listener.close()


async def test_a_connection_closed_while_idle_costs_no_failure(open_session: Open) -> None:
    body = b'{"choices":[{"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]}'
    closed: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        size = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
        await reader.readexactly(size)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        closed.append(writer)
        await reader.read(1)
        writer.close()

    listener = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    session, client = await open_session(base_url=f"http://127.0.0.1:{port}/v1", token_ids="off")
    for at in range(3):
        assert (await client.say(f"{at}")).status == 200
    assert all(not call.retries for call in (await session.close()).calls)
    listener.close()


def _model(server: ModelServer, **options: object) -> Model:
    from orchard_core.gateway.openai import OpenAIConfig, OpenAIModel

    return OpenAIModel(OpenAIConfig(model="m", base_url=server.url, **options))  # type: ignore[arg-type]


async def test_nothing_of_a_model_is_kept_after_its_last_session(
    open_session: Open, gateway: Gateway
) -> None:
    kept = weakref.ref(model := FakeModel(concurrency=1))
    (one, _), (other, client) = await open_session(model), await open_session(model)
    assert one.slots is other.slots
    await one.close()
    await one.close()
    again, _ = await open_session(model)
    assert again.slots is other.slots
    assert (await client.say("go")).status == 200
    await other.close()
    await again.close()
    del model, one, other, again, client
    gc.collect()
    assert kept() is None
