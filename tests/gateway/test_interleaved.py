"""Two threads of one session, interleaved, in every dialect: each is one sample, fully trained."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from orchard_core import Dialect
from orchard_core.gateway.samples import build_samples
from orchard_core.gateway.scripted_tokens import ScriptedTokenModel

from .client import Client
from .conftest import Open
from .dialects import DIALECTS, Json, Spoken

TURNS = 100
CHAT_ONLY = [row for row in DIALECTS if "chat" in row.served]


def answer_of(at: int) -> Json:
    """Every other one calls a tool, with arguments spelled as no client would spell them again."""
    if at % 2:
        return {"role": "assistant", "content": f"word {at}"}
    function = {"name": "run", "arguments": f'{{"at":  {at}, "b":1.0}}'}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": f"c{at}", "type": "function", "function": function}],
    }


def continued(dialect: Dialect, answer: Any, word: str) -> list[Json]:
    """What a harness adds to its conversation after an answer."""
    if dialect is Dialect.RESPONSES:
        items = answer["output"]
        results = [
            {"type": "function_call_output", "call_id": item["call_id"], "output": word}
            for item in items
            if item["type"] == "function_call"
        ]
        return [*items, *(results or [{"type": "message", "role": "user", "content": word}])]
    if dialect is Dialect.MESSAGES:
        results = [
            {"type": "tool_result", "tool_use_id": block["id"], "content": word}
            for block in answer["content"]
            if block["type"] == "tool_use"
        ]
        return [
            {"role": "assistant", "content": answer["content"]},
            {"role": "user", "content": results or word},
        ]
    message = answer["choices"][0]["message"]
    calls = message.get("tool_calls") or ()
    results = [{"role": "tool", "tool_call_id": call["id"], "content": word} for call in calls]
    return [message, *(results or [{"role": "user", "content": word}])]


async def play(client: Client, spoken: Spoken, random: Random) -> None:
    """Two conversations that differ from their first message on take turns as it comes."""
    threads = [list(spoken.asks(f"thread {name}")[spoken.listed]) for name in ("one", "two")]
    for at in range(TURNS):
        thread = random.choice(threads)
        answer = await spoken.post(client, {**spoken.body(), spoken.listed: thread})
        assert answer.status == 200, answer.raw
        thread += continued(spoken.dialect, answer.json, f"on {at}")


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("spoken", CHAT_ONLY, ids=lambda row: row.name)
async def test_interleaved_threads_are_one_sample_each(open_session: Open, spoken: Spoken, seed: int) -> None:
    model = ScriptedTokenModel([answer_of(at) for at in range(TURNS)], name="m")
    session, client = await open_session(model)
    await play(Client(client.http, session.endpoint), spoken, Random(seed))
    trajectory = await session.close()
    made = build_samples(trajectory)
    assert (len(made.samples), made.untrained) == (2, ())
    sampled = sorted(token for call in trajectory.calls for token in call.completion_tokens or ())
    trained = [
        token
        for sample in made.samples
        for token, mask in zip(sample.token_ids, sample.mask, strict=True)
        if mask
    ]
    assert sorted(trained) == sampled
