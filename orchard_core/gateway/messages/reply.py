"""Reading and making whole messages answers."""

from __future__ import annotations

from orchard_core.errors import ModelReplyMalformed
from orchard_core.gateway.dialect import Answer
from orchard_core.gateway.json_text import (
    JsonFault,
    ascii_text,
    decode,
    dumps_ascii,
    loads,
    scan,
    skip,
    walk_object,
    whole,
)
from orchard_core.gateway.messages.usage import messages_report, messages_usage
from orchard_core.types.model import Usage

_HINT = "check that the model's base URL ends in the API's root, such as /v1"


def read_reply(body: bytes) -> Answer:
    """An answer, its content by exact text. Raises ModelReplyMalformed."""
    try:
        text = decode(body)
        reader = _Reader(text)
        start = skip(text, 0)
        whole(text, walk_object(text, start, reader.member))
    except JsonFault as fault:
        raise ModelReplyMalformed(f"the model server's answer is no message: {fault}", hint=_HINT) from None
    if reader.content is None:
        raise ModelReplyMalformed("the model server's answer holds no content", hint=_HINT)
    answer = Answer(finish_reason=reader.stop, usage=reader.usage)
    answer.message = f'{{"role":"assistant","content":{ascii_text(reader.content)}}}'
    return answer


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.content: str | None = None
        self.stop: str | None = None
        self.usage: Usage | None = None

    def member(self, key: str, at: int) -> int:
        value, end = scan(self.text, at)
        if key == "content" and isinstance(value, list):
            self.content = self.text[at:end]
        elif key == "stop_reason" and isinstance(value, str):
            self.stop = ascii_text(value)
        elif key == "usage":
            self.usage = messages_usage(value)
        return end


def make_reply(message: str, *, model: str, finish_reason: str, usage: Usage) -> bytes:
    """A whole answer around one message (JSON text with `content` blocks). Raises ModelReplyMalformed."""
    try:
        content = loads(message)["content"]
    except (JsonFault, LookupError, TypeError) as error:
        raise ModelReplyMalformed(f"the message has no content: {error!r}") from None
    body = {
        "id": "msg_orchard",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": finish_reason,
        "stop_sequence": None,
        "usage": messages_report(usage),
    }
    return dumps_ascii(body).encode()
