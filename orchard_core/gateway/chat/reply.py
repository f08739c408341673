"""Reading and making whole chat completions."""

from __future__ import annotations

from typing import Any

import orjson

from orchard_core.errors import ModelReplyMalformed
from orchard_core.gateway.dialect import Answer
from orchard_core.gateway.json_text import (
    JsonFault,
    ascii_text,
    decode,
    dumps,
    dumps_ascii,
    loads,
    scan,
    skip,
    walk_array,
    walk_object,
    whole,
)
from orchard_core.gateway.usage import chat_report, chat_usage
from orchard_core.types.model import Usage


def read_reply(body: bytes) -> Answer:
    """The first choice of a completion, its message by exact text. Raises ModelReplyMalformed."""
    quick = _quick(body)
    if quick is not None:
        return quick
    try:
        text = decode(body)
        reader = _Reader(text)
        start = skip(text, 0)
        whole(text, walk_object(text, start, reader.member))
    except JsonFault as fault:
        raise ModelReplyMalformed(
            f"the model server's answer is not a chat completion: {fault}", hint=_HINT
        ) from None
    if reader.answer.message is None:
        raise ModelReplyMalformed("the model server's answer holds no message", hint=_HINT)
    return reader.answer


def _quick(body: bytes) -> Answer | None:
    """The same for ordinary answers at a third of the cost: parsed at once, and the message's text found and
    compared with what was parsed. None: look closer."""
    try:
        reply, text = orjson.loads(body), body.decode()
        choice = reply["choices"][0]
        start = text.index('"message":') + len('"message":')
        start = skip(text, start)
        message, end = scan(text, start)
        if not isinstance(message, dict) or message != choice["message"]:
            return None
        finish = choice.get("finish_reason")
        return Answer(
            message=ascii_text(text[start:end]),
            finish_reason=ascii_text(finish) if isinstance(finish, str) else None,
            usage=chat_usage(reply.get("usage")),
        )
    except (ValueError, LookupError, TypeError, AttributeError):
        return None


_HINT = "check that the model's base URL ends in the API's root, such as /v1"


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.answer = Answer()
        self.choices = 0

    def member(self, key: str, at: int) -> int:
        if key == "choices":
            return walk_array(self.text, at, self.choice)
        value, end = scan(self.text, at)
        if key == "usage":
            self.answer.usage = chat_usage(value)
        return end

    def choice(self, at: int) -> int:
        self.choices += 1
        if self.choices > 1:
            return scan(self.text, at)[1]
        return walk_object(self.text, at, self.choice_member)

    def choice_member(self, key: str, at: int) -> int:
        value, end = scan(self.text, at)
        if key == "message" and isinstance(value, dict):
            self.answer.message = ascii_text(self.text[at:end])
        elif key == "finish_reason" and isinstance(value, str):
            self.answer.finish_reason = ascii_text(value)
        return end


def make_reply(message: str, *, model: str, finish_reason: str, usage: Usage) -> bytes:
    """A whole completion around one message (JSON text)."""
    head = {"id": "chatcmpl-orchard", "object": "chat.completion", "created": 0, "model": model}
    choice = f'{{"index":0,"message":{message},"finish_reason":{dumps_ascii(finish_reason)}}}'
    body = f'{dumps_ascii(head)[:-1]},"choices":[{choice}],"usage":{dumps_ascii(chat_report(usage))}}}'
    return body.encode()


def make_chunks(body: bytes) -> list[bytes]:
    """A whole completion as the data of a stream: the message, its end, its counts. Raises
    ModelReplyMalformed."""
    try:
        reply: Any = loads(body)
        choice = reply["choices"][0]
        delta = dict(choice["message"])
        calls = delta.get("tool_calls")
        if isinstance(calls, list):
            delta["tool_calls"] = [{"index": index, **call} for index, call in enumerate(calls)]
        head = {key: value for key, value in reply.items() if key not in ("choices", "usage")}
        head["object"] = "chat.completion.chunk"
        extra = {
            key: value for key, value in choice.items() if key not in ("message", "finish_reason", "index")
        }
        first = {"index": 0, "delta": delta, "finish_reason": None, **extra}
        last = {"index": 0, "delta": {}, "finish_reason": choice.get("finish_reason")}
    except (JsonFault, LookupError, TypeError, ValueError, AttributeError) as error:
        raise ModelReplyMalformed(f"the answer is not a chat completion: {error!r}", hint=_HINT) from None
    chunks = [dumps({**head, "choices": [first]}), dumps({**head, "choices": [last]})]
    if reply.get("usage") is not None:
        chunks.append(dumps({**head, "choices": [], "usage": reply["usage"]}))
    return chunks
