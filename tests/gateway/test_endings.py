"""How a stream ends, in every dialect: the last event tells that the call is recorded."""

from __future__ import annotations

import json
from typing import Any

import aiohttp
import pytest

from orchard_core import Dialect

from .client import Client
from .conftest import Open
from .dialects import DIALECTS, Spoken, events_of
from .model_server import ModelServer, chunk, says, sends, streams

LAST = {
    Dialect.CHAT: b"[DONE]",
    Dialect.RESPONSES: b'"response.completed"',
    Dialect.MESSAGES: b"message_stop",
}
HUGE = 2**70 + 1


def name_of(spoken: Spoken) -> str:
    return spoken.name


def asked(client: Client, spoken: Spoken) -> aiohttp.client._RequestContextManager:
    headers = {"x-api-key": client.endpoint.api_key}
    return client.http.post(
        client.endpoint.base_url + spoken.path, json=spoken.body(stream=True), headers=headers
    )


async def test_a_client_that_leaves_at_the_last_event_finds_its_call_recorded(
    server: ModelServer, dial: Open, spoken: Spoken
) -> None:
    server.plan = [streams(*spoken.events)]
    told: list[object] = []
    session, client = await dial(on_call=lambda call: told.append(call.error))
    async with asked(client, spoken) as response:
        block = b""
        while LAST[spoken.dialect] not in block:
            block = await response.content.readuntil(b"\n\n")
        assert told == [None]
        response.close()
    (call,) = (await session.close()).calls
    assert call.error is None


@pytest.mark.parametrize("spoken", [row for row in DIALECTS if row.dialect is Dialect.RESPONSES], ids=name_of)
async def test_an_error_goes_on_counting_the_events_of_its_response(
    server: ModelServer, dial: Open, spoken: Spoken
) -> None:
    numbered = [{**event, "sequence_number": place} for place, event in enumerate(spoken.events[:3])]
    server.plan = [streams(*numbered, b"data: not json\n\n", done=False)]
    _, client = await dial()
    answer = await spoken.post(client, spoken.body(stream=True))
    *others, last = list(events_of(answer.raw))
    numbers = [event["sequence_number"] for event in (*others, last)]
    assert numbers == list(range(len(numbers)))
    assert last["response"]["id"] == others[0]["response"]["id"]
    assert last["type"] == "response.failed"


def grown(value: Any) -> Any:
    """The same with a huge integer beside every text of the model's."""
    if isinstance(value, list):
        return [grown(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    more = {"vendor": HUGE} if value.keys() & {"text", "delta", "content", "output"} else {}
    return {name: grown(inner) for name, inner in value.items()} | more


async def test_integers_of_any_size_survive(server: ModelServer, dial: Open, spoken: Spoken) -> None:
    """In what the model is asked and in what is recorded of its answers, whole or streamed."""
    server.plan = [sends(json.dumps(grown(spoken.answer)).encode()), streams(*spoken.events)]
    session, client = await dial()
    await spoken.post(client, spoken.body(vendor=HUGE))
    await spoken.post(client, spoken.body(stream=True, vendor=HUGE))
    assert [each.body["vendor"] for each in server.asked] == [HUGE, HUGE]
    trajectory = await session.close()
    first, _ = trajectory.calls
    assert f'"vendor":{HUGE}' in trajectory.messages[first.response or ""].raw.replace(" ", "")
    assert json.loads(first.params)["vendor"] == HUGE


@pytest.mark.parametrize("spoken", [row for row in DIALECTS if not row.native], ids=name_of)
async def test_arguments_with_huge_integers_are_the_ones_that_the_model_gave(
    server: ModelServer, dial: Open, spoken: Spoken
) -> None:
    """They travel as an object in one dialect and as text in the others."""
    call = {"id": "c", "type": "function", "function": {"name": "run", "arguments": f'{{"at": {HUGE}}}'}}
    server.plan = [
        says(None, calls=[("c", "run", f'{{"at": {HUGE}}}')]),
        streams(chunk({"tool_calls": [{"index": 0, **call}]}), chunk({}, "tool_calls")),
    ]
    _, client = await dial()
    whole = await spoken.post(client, spoken.body())
    streamed = await spoken.post(client, spoken.body(stream=True))
    assert str(HUGE) in whole.raw.decode()
    assert str(HUGE) in streamed.raw.decode()
