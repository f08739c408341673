"""One call through a session: what the harness gets, and what is recorded."""

from __future__ import annotations

import json

import pytest

from orchard_core import Limits, Price, Usage

from .client import system, tool, user
from .conftest import Open
from .model_server import ModelServer, completion, fails, says, sends

TOOLS = [{"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}}]
FREE = Price(input=0.0, output=0.0)


async def test_the_harness_gets_the_answer_and_the_session_its_record(
    server: ModelServer, open_session: Open
) -> None:
    session, client = await open_session()
    answer = await client.say("hi", temperature=0.5, tools=TOOLS, my_own_field={"deep": [1, 2]})
    assert answer.status == 200
    assert answer.message["content"] == "hello"
    assert server.asked[0].body["my_own_field"] == {"deep": [1, 2]}
    trajectory = await session.close()
    (call,) = trajectory.calls
    assert json.loads(call.params) == {"model": "m", "temperature": 0.5, "my_own_field": {"deep": [1, 2]}}
    assert call.tools is not None
    assert json.loads(trajectory.blobs[call.tools]) == TOOLS
    assert call.finish_reason == "stop"
    assert call.error is None
    assert call.response is not None
    assert json.loads(trajectory.messages[call.response].raw)["content"] == "hello"
    assert call.timings.total_s > 0


async def test_a_long_conversation_is_stored_once(server: ModelServer, open_session: Open) -> None:
    session, client = await open_session()
    messages = [system("you are an agent"), user("begin")]
    for turn in range(20):
        answer = await client.chat(messages)
        messages += [answer.message, user(f"observation {turn} " + "x" * 1000)]
    trajectory = await session.close()
    assert [len(call.messages.added) for call in trajectory.calls] == [2] + [2] * 19
    assert [call.messages.base for call in trajectory.calls] == [None, *range(19)]
    stored = sum(len(message.raw) for message in trajectory.messages.values())
    assert stored < 2 * sum(len(json.dumps(message)) for message in messages)


async def test_two_threads_of_one_session_are_both_stored_once(
    server: ModelServer, open_session: Open
) -> None:
    session, client = await open_session()
    threads = [[system("main"), user("a")], [system("helper"), user("b")]]
    for turn in range(6):
        thread = threads[turn % 2]
        answer = await client.chat(thread)
        thread += [answer.message, user(f"more {turn}")]
    trajectory = await session.close()
    assert [call.messages.base for call in trajectory.calls] == [None, None, 0, 1, 2, 3]


async def test_a_changed_message_in_the_middle_keeps_only_what_is_shared(
    server: ModelServer, open_session: Open
) -> None:
    session, client = await open_session()
    messages = [system("s"), user("one"), user("two"), user("three")]
    await client.chat(messages)
    messages[2] = user("changed")
    await client.chat(messages)
    first, second = (await session.close()).calls
    assert (second.messages.base, second.messages.keep) == (first.index, 2)
    assert len(second.messages.added) == 2


async def test_arguments_are_kept_byte_for_byte(server: ModelServer, open_session: Open) -> None:
    arguments = '{"b":1 ,  "a" : "\\u00e9\\ud83d\\ude00 \\"q\\"" , "n": 1.0}'
    server.plan = [says(None, calls=[("call_1", "bash", arguments)])]
    session, client = await open_session()
    first = await client.say("go")
    await client.chat([user("go"), first.message, tool("call_1", "done")])
    trajectory = await session.close()
    assert server.asked[1].body["messages"][1]["tool_calls"][0]["function"]["arguments"] == arguments
    answer, echo = trajectory.calls[0].response, trajectory.calls[1].messages.added[0]
    assert answer is not None
    for key in (answer, echo):
        recorded = json.loads(trajectory.messages[key].raw)
        assert recorded["tool_calls"][0]["function"]["arguments"] == arguments


async def test_fault_24_a_lone_surrogate_round_trips(server: ModelServer, open_session: Open) -> None:
    body = b'{"choices":[{"message":{"role":"assistant","content":"a\\ud800b"},"finish_reason":"stop"}]}'
    server.plan = [sends(body)]
    session, client = await open_session()
    first = await client.say("go")
    assert first.message["content"] == "a\ud800b"
    second = await client.chat([user("go"), first.message, user("\udfff too")])
    assert second.status == 200
    assert server.asked[1].body["messages"][1]["content"] == "a\ud800b"
    trajectory = await session.close()
    stored = trajectory.model_validate_json(trajectory.model_dump_json())
    key = stored.calls[0].response
    assert key is not None
    assert json.loads(stored.messages[key].raw)["content"] == "a\ud800b"
    assert json.loads(stored.messages[stored.calls[1].messages.added[1]].raw)["content"] == "\udfff too"


async def test_fault_24_raw_surrogate_bytes_become_an_escape(server: ModelServer, open_session: Open) -> None:
    raw = "\ud800".encode("utf-8", "surrogatepass")
    server.plan = [
        sends(
            b'{"choices":[{"message":{"role":"assistant","content":"a' + raw + b'"},"finish_reason":"stop"}]}'
        )
    ]
    session, client = await open_session()
    answer = await client.say("go")
    assert answer.message["content"] == "a\ud800"
    key = (await session.close()).calls[0].response
    assert key is not None


@pytest.mark.parametrize(
    ("reported", "usage"),
    [
        ({"prompt_tokens": 100, "completion_tokens": 7}, Usage(input=100, output=7)),
        (
            {"prompt_tokens": 100, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 60}},
            Usage(input=40, cache_read=60, output=7),
        ),
        (
            {
                "prompt_tokens": 100,
                "completion_tokens": 7,
                "prompt_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 30},
            },
            Usage(input=10, cache_read=60, cache_write=30, output=7),
        ),
        (
            {"prompt_tokens": 100, "completion_tokens": 7, "prompt_cache_hit_tokens": 99},
            Usage(input=1, cache_read=99, output=7),
        ),
        (
            {"prompt_tokens": 10, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 60}},
            Usage(input=0, cache_read=10, output=7),
        ),
        ({"prompt_tokens": -4, "completion_tokens": "many"}, Usage()),
        ("nonsense", Usage()),
    ],
)
async def test_fault_23_counts_never_overlap(
    server: ModelServer, open_session: Open, reported: object, usage: Usage
) -> None:
    server.otherwise = says(usage=reported)
    session, client = await open_session()
    await client.say("go")
    assert (await session.close()).usage == usage


async def test_fault_23_cached_tokens_have_their_own_rate(server: ModelServer, open_session: Open) -> None:
    server.otherwise = says(
        usage={
            "prompt_tokens": 1_000_000,
            "completion_tokens": 1_000_000,
            "prompt_tokens_details": {"cached_tokens": 500_000},
        }
    )
    session, client = await open_session(price=Price(input=2.0, output=10.0, cache_read=0.2))
    await client.say("go")
    assert (await session.close()).cost_usd == pytest.approx(1.0 + 0.1 + 10.0)


async def test_fault_23_an_unknown_price_is_none_and_free_is_zero(
    server: ModelServer, open_session: Open
) -> None:
    unknown, client = await open_session()
    await client.say("go")
    assert (await unknown.close()).calls[0].cost_usd is None
    free, client = await open_session(price=FREE)
    await client.say("go")
    assert (await free.close()).calls[0].cost_usd == 0.0


async def test_fault_23_unknown_counts_make_the_cost_unknown(server: ModelServer, open_session: Open) -> None:
    server.otherwise = sends(json.dumps({"choices": completion()["choices"]}).encode())
    session, client = await open_session(price=Price(input=1.0, output=1.0))
    await client.say("go")
    assert (await session.close()).cost_usd is None


async def test_the_upstreams_own_words_reach_the_harness(server: ModelServer, open_session: Open) -> None:
    words = {
        "error": {"message": "too long", "code": "context_length_exceeded", "type": "invalid", "param": None}
    }
    server.plan = [fails(400, words)]
    session, client = await open_session(token_ids="off")
    answer = await client.say("go")
    assert (answer.status, answer.json) == (400, words)
    assert type(session.last_error).__name__ == "ModelRejected"
    (call,) = (await session.close()).calls
    assert call.error is not None
    assert call.error.kind == "ModelRejected"
    assert call.response is None


async def test_keys_never_stray(server: ModelServer, open_session: Open) -> None:
    server.plan = [fails(401, {"error": {"message": "Incorrect API key provided: vendor-secret-key"}})]
    session, client = await open_session()
    answer = await client.say("go")
    assert server.asked[0].request.headers["Authorization"] == "Bearer vendor-secret-key"
    trajectory = await session.close()
    assert b"vendor-secret-key" not in answer.raw
    assert "vendor-secret-key" not in trajectory.model_dump_json()
    assert client.endpoint.api_key not in trajectory.model_dump_json()
    assert client.endpoint.api_key not in repr(client.endpoint)
    assert client.endpoint.api_key not in server.asked[0].raw.decode()


@pytest.mark.parametrize(
    ("limits", "kind"),
    [
        (Limits(calls=2), "calls"),
        (Limits(tokens=25), "tokens"),
        (Limits(cost_usd=15e-6), "cost"),
        (Limits(wall_clock_s=0.0), "wall_clock"),
    ],
)
async def test_a_used_up_budget_refuses_the_next_call(
    server: ModelServer, open_session: Open, limits: Limits, kind: str
) -> None:
    session, client = await open_session(limits=limits, price=Price(input=1.0, output=1.0))
    answers = [await client.say(f"call {at}") for at in range(4)]
    refused = next(answer for answer in answers if answer.status != 200)
    assert (refused.status, refused.error["code"]) == (403, "budget_exceeded")
    assert refused.headers["x-should-retry"] == "false"
    assert session.exhausted is not None
    assert session.exhausted.kind == kind
    made = {"calls": 2, "tokens": 2, "cost": 1, "wall_clock": 0}[kind]
    assert len(server.asked) == len((await session.close()).calls) == made


async def test_hooks_hold_a_call_and_see_its_record(server: ModelServer, open_session: Open) -> None:
    order: list[object] = []

    async def before(session_id: str, index: int) -> None:
        order.append(("before", session_id, index, len(server.asked)))

    session, client = await open_session(before_call=before, on_call=lambda call: order.append(call.index))
    await client.say("one")
    await client.say("two")
    assert order == [("before", session.id, 0, 0), 0, ("before", session.id, 1, 1), 1]


async def test_a_failing_observer_costs_nothing(server: ModelServer, open_session: Open) -> None:
    def broken(call: object) -> None:
        raise ValueError("observer")

    session, client = await open_session(on_call=broken)
    assert (await client.say("one")).status == 200
    assert len((await session.close()).calls) == 1
