"""Very long conversations are read in time that grows with their length, not with its square.

Each takes a second or two as it is, and hours where texts are joined piece by piece.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from orchard_core.gateway.conversation import Conversation
from orchard_core.gateway.dialects import BY_PATH, SPOKEN, Spoken

PIECE = "x" * 60
MANY = 150_000
THOUGHT = {"type": "thinking", "thinking": PIECE, "signature": "s"}
SUMMARY = {"type": "reasoning", "summary": [{"type": "summary_text", "text": PIECE}]}
JOINS = {**SUMMARY, "encrypted_content": 'orchard:{"joins":true}'}
SAID = {"type": "message", "role": "assistant", "content": PIECE}
LONG: dict[str, tuple[str, dict[str, Any]]] = {
    "thinking blocks": ("/v1/messages", {"messages": [{"role": "assistant", "content": [THOUGHT] * MANY}]}),
    "system items": ("/v1/responses", {"input": [{"role": "system", "content": PIECE}] * MANY}),
    "joined reasoning": ("/v1/responses", {"input": [SAID, *[JOINS] * MANY]}),
    "joined words": ("/v1/responses", {"input": [JOINS, *[SAID] * MANY]}),
}


@pytest.mark.parametrize("name", LONG)
def test_one_message_of_very_many_pieces_is_read(name: str) -> None:
    path, asked = LONG[name]
    codec = BY_PATH[path].translated
    assert codec is not None
    request = codec.request(json.dumps({"model": "m", **asked}).encode(), Conversation())
    (message,) = json.loads(request.body)["messages"]
    whole = "".join(text for text in message.values() if isinstance(text, str))
    assert whole.count(PIECE) >= MANY


@pytest.mark.parametrize("spoken", SPOKEN, ids=lambda spoken: spoken.path)
def test_very_many_messages_and_tools_are_read(spoken: Spoken) -> None:
    listed = "input" if spoken.path == "/v1/responses" else "messages"
    tools = [{"type": "function", "name": f"t{at}", "input_schema": {}} for at in range(1000)]
    asked = {"model": "m", listed: [{"role": "user", "content": PIECE}] * MANY, "tools": tools}
    for codec in (spoken.native, spoken.translated):
        if codec is not None:
            request = codec.request(json.dumps(asked).encode(), Conversation())
            assert len(request.heard.sent) == MANY
