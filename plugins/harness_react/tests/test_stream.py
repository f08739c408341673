"""Streamed answers say the same as whole ones."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from orchard_harness_react.stream import assembled

from orchard_core import ModelReplyMalformed, ModelUnavailable, StopReason

from .conftest import Play
from .model_server import Said


def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    """One piece of a stream."""
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def call(index: int, call_id: str | None = None, **function: str) -> dict[str, Any]:
    """A piece of a call; the first one carries the id."""
    first = {"id": call_id, "type": "function"} if call_id else {}
    return {"tool_calls": [{"index": index, **first, "function": function}]}


STREAM: list[Any] = [
    chunk({"role": "assistant", "content": ""}),
    chunk({"reasoning_content": "Th"}),
    chunk({"reasoning_content": "ink."}),
    chunk({"content": "I wi"}),
    chunk({"content": "ll."}),
    chunk(call(0, "a", name="bash", arguments="")),
    chunk(call(0, arguments='{"command": ')),
    chunk(call(0, arguments='"echo 1"}')),
    chunk(call(1, "b", name="submit", arguments="{}")),
    chunk({}, "tool_calls"),
    {"choices": [], "usage": {"prompt_tokens": 1}},
    "[DONE]",
]  # fmt: skip


async def test_a_streamed_answer_is_acted_upon_like_a_whole_one(play: Play) -> None:
    first = [piece for piece in STREAM if "'submit'" not in str(piece)]
    ran = await play(Said(chunks=first), Said(chunks=STREAM), stream=True)
    assert ran.server.requests[0]["stream"] is True
    assert ran.server.requests[1]["messages"][2] == {
        "role": "assistant",
        "content": "I will.",
        "reasoning_content": "Think.",
        "tool_calls": [
            {
                "type": "function",
                "function": {"name": "bash", "arguments": '{"command": "echo 1"}'},
                "id": "a",
            }
        ],
    }
    assert ran.result.stop is StopReason.SUBMITTED


async def test_an_error_within_a_stream_is_raised(play: Play) -> None:
    with pytest.raises(ModelUnavailable, match="engine died"):
        await play(Said(chunks=[STREAM[0], {"error": {"message": "engine died"}}]), stream=True)


async def test_a_stream_that_breaks_off_is_no_answer(play: Play) -> None:
    with pytest.raises(ModelReplyMalformed, match="broke off"):
        await play(Said(chunks=STREAM[:4]), stream=True)


@pytest.mark.parametrize("payload", ["nonsense", "[1]", "[" * 100_000])
async def test_a_piece_that_is_no_chunk_is_refused(play: Play, payload: str) -> None:
    with pytest.raises(ModelReplyMalformed):
        await play(Said(chunks=[payload]), stream=True)


async def test_pieces_may_be_cut_anywhere_and_lines_be_of_any_length() -> None:
    text = "é" * 300_000
    raw = b"".join(
        f"data: {payload}\n\n".encode()
        for payload in (
            f'{{"choices": [{{"delta": {{"content": "{text}"}}, "finish_reason": "stop"}}]}}',
            "[DONE]",
        )
    )

    async def pieces() -> AsyncIterator[bytes]:
        for at in range(0, len(raw), 4099):
            yield raw[at : at + 4099]

    assert (await assembled(pieces())).text == text
