"""Chat messages, completions and chunks to translate, and responses read back."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

from hypothesis import strategies as st

from orchard_core.gateway.chat.reply import make_chunks
from orchard_core.gateway.conversation import Conversation
from orchard_core.gateway.dialect import Translated
from orchard_core.gateway.responses.items import chat_messages
from orchard_core.gateway.responses.tools import Tool
from orchard_core.gateway.responses.translation import ResponsesTranslation

Json = dict[str, Any]

TOOLS: list[Json] = [
    {"type": "function", "name": "run", "parameters": {"type": "object"}},
    {"type": "custom", "name": "patch"},
    {"type": "namespace", "name": "agents", "tools": [{"type": "function", "name": "spawn"}]},
]
NOTES: Mapping[str, object] = {
    "tools": {
        "run": Tool(name="run"),
        "patch": Tool(name="patch", custom=True),
        "agents__spawn": Tool(name="spawn", namespace="agents"),
    }
}
NAMES = ("run", "patch", "agents__spawn")


def ask(**fields: Any) -> Translated:
    """Translate a request."""
    body = {"model": "m", "input": "hi", **fields}
    return ResponsesTranslation().request(json.dumps(body).encode(), Conversation())


def asked(**fields: Any) -> Json:
    """The chat request it becomes."""
    chat: Json = json.loads(ask(**fields).body)
    return chat


def completion(message: Json, finish: str = "stop", **fields: Any) -> bytes:
    """A whole chat answer."""
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return json.dumps({"id": "c", "created": 7, "model": "m", "choices": [choice], **fields}).encode()


def answered(message: Json, finish: str = "stop", **fields: Any) -> Json:
    """The response it becomes."""
    body: Json = json.loads(ResponsesTranslation().reply(completion(message, finish, **fields), NOTES))
    return body


def streamed(chunks: Iterable[bytes]) -> list[Json]:
    """The events that a streamed chat answer becomes."""
    events = ResponsesTranslation().events(NOTES)
    raw = b"".join([*map(events.feed, chunks), events.end()])
    return [_event(frame) for frame in raw.split(b"\n\n") if frame]


def _event(frame: bytes) -> Json:
    first, second = frame.split(b"\n")
    event: Json = json.loads(second.removeprefix(b"data: "))
    assert first == b"event: " + event["type"].encode()
    return event


def sent_back(items: list[Json]) -> Json:
    """The chat message that an answer becomes when a client sends its items back."""
    results = [
        {"type": f"{item['type']}_output", "call_id": item["call_id"], "output": "done"}
        for item in items
        if "call_id" in item
    ]
    first, message, *_ = chat_messages(None, [_user("go"), *items, *results, _user("on")], Counter())
    assert first == {"role": "user", "content": "go"}
    return message


def _user(text: str) -> Json:
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


def said(message: Json) -> Json:
    """The message without fields that say nothing."""
    return {key: value for key, value in message.items() if value not in (None, "", [], {})}


def in_pieces(message: Json, cuts: list[int]) -> list[bytes]:
    """A message as chunks: texts and arguments cut at the given places."""
    whole = json.loads(
        make_chunks(completion(message, usage={"prompt_tokens": 3, "completion_tokens": 2}))[0]
    )
    usage = {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}
    deltas = [*_deltas(whole["choices"][0]["delta"], cuts)]
    chunks = [{**whole, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    end = {**whole, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    return [json.dumps(chunk).encode() for chunk in [*chunks, end, usage]]


def _deltas(delta: Json, cuts: list[int]) -> Iterable[Json]:
    calls = delta.pop("tool_calls", None) or []
    for key in ("reasoning_content", "reasoning", "content", "refusal"):
        if isinstance(delta.get(key), str):
            yield from ({key: piece} for piece in _cut(delta.pop(key), cuts))
    yield delta
    for call in calls:
        arguments = call["function"].pop("arguments")
        yield {"tool_calls": [call]}
        for piece in _cut(arguments, cuts):
            yield {"tool_calls": [{"index": call["index"], "function": {"arguments": piece}}]}


def _cut(text: str, cuts: list[int]) -> list[str]:
    places = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    return [text[start:end] for start, end in pairwise(places)] or [""]


texts = st.text(max_size=20) | st.just("\ud83d broken")
arguments = st.one_of(
    texts,
    st.dictionaries(st.text(max_size=4), st.integers(), max_size=2).map(json.dumps),
    texts.map(lambda text: json.dumps({"input": text})),
    texts.map(lambda text: json.dumps({"input": text}, separators=(",", ":"))),
)


@st.composite
def answers(draw: st.DrawFn) -> Json:
    """Messages as models give them."""
    message: Json = {"role": "assistant", "content": draw(st.none() | texts)}
    if draw(st.booleans()):
        message[draw(st.sampled_from(["reasoning_content", "reasoning"]))] = draw(texts)
    if draw(st.integers(0, 4)) == 0:
        message["refusal"] = draw(texts)
    if draw(st.integers(0, 4)) == 0:
        message["provider"] = draw(st.dictionaries(texts, st.integers(-(2**63), 2**63) | texts, max_size=2))
    calls = draw(st.lists(st.tuples(st.sampled_from(NAMES), arguments), max_size=3))
    if calls:
        message["tool_calls"] = [
            {"id": f"call_{place}", "type": "function", "function": {"name": name, "arguments": text}}
            for place, (name, text) in enumerate(calls)
        ]
    return message
