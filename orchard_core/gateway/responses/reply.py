"""Reading and making whole responses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from orchard_core.errors import ModelError, ModelRejected, ModelReplyMalformed, ModelUnavailable
from orchard_core.gateway.dialect import Answer
from orchard_core.gateway.json_text import (
    JsonFault,
    ascii_text,
    decode,
    dumps,
    loads,
    scan,
    skip,
    walk_object,
    whole,
)
from orchard_core.gateway.responses import made
from orchard_core.gateway.responses.answer import output_items
from orchard_core.gateway.responses.made import new_id
from orchard_core.gateway.usage import chat_report
from orchard_core.types.model import Usage

_HINT = "check that the model's base URL ends in the API's root, such as /v1"


def read_reply(body: bytes) -> Answer:
    """Its output items, by exact text, are the answer's message. Raises ModelReplyMalformed, and another
    ModelError for a response that failed."""
    try:
        text = decode(body)
        reader = _Reader(text)
        start = skip(text, 0)
        whole(text, walk_object(text, start, reader.member))
    except JsonFault as fault:
        raise ModelReplyMalformed(
            f"the model server's answer is not a response: {fault}", hint=_HINT
        ) from None
    return read_response(reader.values, reader.output)


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.values: dict[str, Any] = {}
        self.output: str | None = None

    def member(self, key: str, at: int) -> int:
        value, end = scan(self.text, at)
        self.values[key] = value
        if key == "output":
            self.output = self.text[at:end]
        return end


def read_response(response: Mapping[str, Any], output: str | None) -> Answer:
    """What a response object tells; `output` is the text of its items. Raises as `read_reply`."""
    if response.get("status") == "failed" or response.get("error"):
        raise failure(response.get("error"))
    items = response.get("output")
    if output is None or not isinstance(items, list):
        raise ModelReplyMalformed("the model server's answer holds no output", hint=_HINT)
    return Answer(
        message=message_of(output),
        finish_reason=finish_of(response, items),
        usage=response_usage(response.get("usage")),
    )


def message_of(output: str) -> str:
    """The message that is recorded, around the text of the items."""
    return f'{{"role":"assistant","output":{ascii_text(output)}}}'


def finish_of(response: Mapping[str, Any], items: list[Any]) -> str | None:
    """Why it ended, in the words of chat completions; None while it has not."""
    status = response.get("status")
    if status == "incomplete":
        details = response.get("incomplete_details")
        reason = details.get("reason") if isinstance(details, dict) else None
        return "length" if reason == "max_output_tokens" else ascii_text(str(reason or "incomplete"))
    if status != "completed":
        return None
    called = any(isinstance(item, dict) and item.get("type") in _CALLS for item in items)
    return "tool_calls" if called else "stop"


_CALLS = ("function_call", "custom_tool_call", "local_shell_call")


def failure(error: object) -> ModelError:
    """The error of a response that failed."""
    said = error if isinstance(error, dict) else {}
    code, words = str(said.get("code") or ""), str(said.get("message") or error)[:500]
    message = f"the model server could not answer: {words}"
    if code in _FINAL:
        return ModelRejected(message, status=400, body=dumps({"error": said}).decode())
    return ModelUnavailable(message)


_FINAL = frozenset({"context_length_exceeded", "invalid_prompt", "insufficient_quota"})
"""Codes of failures that the same request would meet again."""


def response_usage(reported: object) -> Usage | None:
    """Counts of a response's `usage`, made disjoint; None when there is none."""
    if not isinstance(reported, dict):
        return None
    total, output = _count(reported.get("input_tokens")), _count(reported.get("output_tokens"))
    if total is None and output is None:
        return None
    details = reported.get("input_tokens_details")
    inner = details if isinstance(details, dict) else {}
    prompt = total or 0
    read = min(_count(inner.get("cached_tokens")) or 0, prompt)
    written = min(_count(inner.get("cache_write_tokens")) or 0, prompt - read)
    return Usage(input=prompt - read - written, cache_read=read, cache_write=written, output=output or 0)


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def make_reply(message: str, *, model: str, finish_reason: str, usage: Usage) -> bytes:
    """A whole response around one message: output items as they are recorded, or a chat message."""
    said = loads(message)
    items = said["output"] if "output" in said else output_items(said, {})
    head = {"id": new_id("resp"), "model": model}
    return dumps(made.response(head, items, **made.state(finish_reason, chat_report(usage))))


def make_events(body: bytes) -> Iterator[dict[str, Any]]:
    """A whole response as the events of a stream, an item in one piece. Raises ModelReplyMalformed."""
    try:
        response = loads(body)
        items, status = response["output"], response["status"]
        begun = {**response, "status": "in_progress", "output": [], "usage": None}
    except (JsonFault, LookupError, TypeError) as error:
        raise ModelReplyMalformed(f"the answer is not a response: {error!r}", hint=_HINT) from None
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for place, item in enumerate(items):
        yield {"type": "response.output_item.added", "output_index": place, "item": item}
        yield {"type": "response.output_item.done", "output_index": place, "item": item}
    yield {"type": f"response.{status}", "response": response}
