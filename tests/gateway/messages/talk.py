"""Chat messages, completions and chunks to translate, and messages answers read back by a client."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from hypothesis import strategies as st

from orchard_core.gateway.conversation import Conversation
from orchard_core.gateway.dialect import Translated
from orchard_core.gateway.messages.translation import MessagesTranslation

Json = dict[str, Any]

TOOLS = [{"name": "run", "description": "Runs.", "input_schema": {"type": "object"}}]


def ask(conversation: Conversation | None = None, **fields: Any) -> Translated:
    """Translate a request."""
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}], **fields}
    return MessagesTranslation().request(json.dumps(body).encode(), conversation or Conversation())


def asked(conversation: Conversation | None = None, **fields: Any) -> Json:
    """The chat request it becomes."""
    chat: Json = json.loads(ask(conversation, **fields).body)
    return chat


def completion(message: Json, finish: str = "stop", **fields: Any) -> bytes:
    """A whole chat answer."""
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return json.dumps({"id": "c", "created": 7, "model": "m", "choices": [choice], **fields}).encode()


def answered(message: Json, finish: str = "stop", **fields: Any) -> Json:
    """The answer it becomes."""
    body: Json = json.loads(MessagesTranslation().reply(completion(message, finish, **fields), {}))
    return body


def in_pieces(message: Json, size: int = 3, finish: str = "stop") -> Iterator[Json]:
    """The same answer as chat chunks."""
    yield _chunk({"role": "assistant", "content": ""})
    for name in ("reasoning_content", "reasoning", "content"):
        for piece in _cut(message.get(name) or "", size):
            yield _chunk({name: piece})
    for place, call in enumerate(message.get("tool_calls", ())):
        function = {"name": call["function"]["name"], "arguments": ""}
        yield _chunk({"tool_calls": [{"index": place, **call, "function": function}]})
        for piece in _cut(call["function"]["arguments"], size):
            yield _chunk({"tool_calls": [{"index": place, "function": {"arguments": piece}}]})
    yield _chunk({}, finish)
    yield {"id": "c", "model": "m", "choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 5}}


def streamed(chunks: Iterator[Json] | Sequence[Json]) -> list[Json]:
    """The events that chunks become."""
    events = MessagesTranslation().events({})
    raw = b"".join(events.feed(json.dumps(chunk).encode()) for chunk in chunks) + events.end()
    return [_event(block) for block in raw.decode().removesuffix("\n\n").split("\n\n")]


def _event(block: str) -> Json:
    name, data = block.split("\n")
    event: Json = json.loads(data.removeprefix("data: "))
    assert name == f"event: {event['type']}"
    return event


def gathered(events: list[Json]) -> Json:
    """The answer as a client puts it together from its events, the way Anthropic's reference tells."""
    message: Json = events[0]["message"]
    pieces: dict[int, str] = {}
    for event in events[1:]:
        match event["type"]:
            case "content_block_start":
                assert event["index"] == len(message["content"])
                message["content"].append(event["content_block"])
            case "content_block_delta":
                block, delta = message["content"][event["index"]], event["delta"]
                if delta["type"] == "input_json_delta":
                    pieces[event["index"]] = pieces.get(event["index"], "") + delta["partial_json"]
                else:
                    name = delta["type"].removesuffix("_delta")
                    block[name] += delta[name]
            case "message_delta":
                message |= event["delta"] | {"usage": event["usage"]}
    for index, text in pieces.items():
        try:
            value = json.loads(text)
        except ValueError:
            value = None
        message["content"][index]["input"] = value if isinstance(value, dict) else {}
    return message


def spoken(conversation: Conversation, message: Json) -> None:
    """The model gave this answer."""
    conversation.said.add(json.dumps(message))


def sent_back(conversation: Conversation, content: list[Json]) -> Json:
    """The chat message that an answer becomes when a harness sends it back."""
    turns = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": content}]
    message: Json = asked(conversation, messages=turns)["messages"][1]
    return message


def _chunk(delta: Json, finish: str | None = None) -> Json:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "c", "model": "m", "choices": [choice]}


def _cut(text: str, size: int) -> Iterator[str]:
    return (text[at : at + size] for at in range(0, len(text), size))


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@st.composite
def arguments(draw: st.DrawFn) -> str:
    """A call's arguments, spelled as a model might: blanks, escapes, order; sometimes no JSON at all."""
    if draw(st.integers(0, 5)) == 0:
        return draw(st.sampled_from(["", "{", '{"a": ', "ls -l", "[1]", '"x"']))
    value = draw(st.dictionaries(st.text(max_size=4), values, max_size=3))
    pair = draw(st.sampled_from([(",", ":"), (", ", ": "), (" , ", " :  ")]))
    return json.dumps(value, separators=pair, ensure_ascii=draw(st.booleans()))


@st.composite
def answers(draw: st.DrawFn) -> Json:
    """What a model may answer, in the declared subset."""
    message: Json = {"role": "assistant", "content": draw(st.text(max_size=12))}
    reasoning = draw(st.sampled_from([None, "reasoning_content", "reasoning"]))
    if reasoning is not None:
        message[reasoning] = draw(st.text(min_size=1, max_size=12))
    made = draw(st.lists(arguments(), max_size=3))
    if made:
        message["content"] = message["content"] or None
        first = draw(st.integers(0, 10**6))
        message["tool_calls"] = [
            {
                "id": f"call_{first}_{at}",
                "type": "function",
                "function": {"name": "run", "arguments": arguments},
            }
            for at, arguments in enumerate(made)
        ]
    return message
