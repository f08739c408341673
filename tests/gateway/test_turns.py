"""A trajectory read as turns."""

from __future__ import annotations

import json

from orchard_core import Message
from orchard_core.gateway.conversation import content_hash
from orchard_core.gateway.turns import turns

from .client import system, tool, user
from .conftest import Open
from .model_server import ModelServer, says


async def test_observations_are_what_the_next_request_added(server: ModelServer, open_session: Open) -> None:
    server.plan = [says(None, calls=[("a", "bash", "{}"), ("b", "bash", "{}")]), says("title"), says("bye")]
    session, client = await open_session()
    messages = [system("s"), user("go")]
    first = await client.chat(messages)
    await client.chat([system("write a title"), user("go")])
    echo = {"tool_calls": first.message["tool_calls"], "content": "", "role": "assistant"}
    await client.chat([*messages, echo, tool("a", "one"), tool("b", "two")])
    trajectory = await session.close()
    raw = json.dumps(tool("x", "the core's own log"))
    key = content_hash(raw)
    logged = trajectory.model_copy(
        update={
            "messages": {**trajectory.messages, key: Message(role="tool", raw=raw)},
            "last_observations": (key,),
        }
    )
    read = turns(logged)
    assert [turn.follows for turn in read] == [None, None, 0]
    told = [[json.loads(message.raw)["content"] for message in turn.observations] for turn in read]
    assert told == [["one", "two"], [], ["the core's own log"]]


async def test_of_two_answers_to_one_request_the_one_sent_back_is_followed(
    server: ModelServer, open_session: Open
) -> None:
    server.plan = [says("first"), says("second"), says("bye")]
    session, client = await open_session()
    kept = await client.say("go")
    await client.say("go")
    await client.chat([user("go"), kept.message, user("on")])
    assert [turn.follows for turn in turns(await session.close())] == [None, None, 0]


async def test_no_calls_are_no_turns(open_session: Open) -> None:
    session, _ = await open_session()
    assert turns(await session.close()) == []
