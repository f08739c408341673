"""A whole chat completion as a messages answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from secrets import token_hex
from typing import Any

from orchard_core.gateway.json_text import dumps, loads
from orchard_core.gateway.messages.signatures import signature_of
from orchard_core.gateway.messages.usage import messages_report
from orchard_core.gateway.reasoning import reasoning_of
from orchard_core.gateway.said import as_object
from orchard_core.gateway.usage import chat_usage
from orchard_core.types.model import Usage

_STOPS = {
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "content_filter": "refusal",
}


def answer_of(body: bytes, notes: Mapping[str, object]) -> bytes:
    """Translate a whole answer. Raises whatever a completion of another shape leads to; `TranslatingCodec`
    makes one error of it."""
    reply = loads(body)
    choice = reply["choices"][0]
    message = new_id()
    content = list(_content(choice["message"], message))
    called = any(block["type"] == "tool_use" for block in content)
    reason, sequence = stop_of(choice, notes, called=called)
    answer = {
        "id": message,
        "type": "message",
        "role": "assistant",
        "model": reply.get("model") or "",
        "content": content,
        "stop_reason": reason,
        "stop_sequence": sequence,
        "usage": messages_report(chat_usage(reply.get("usage")) or Usage()),
    }
    return dumps(answer)


def new_id() -> str:
    """Of a message. Clients take answers of one id for pieces of one, and servers do not always count."""
    return f"msg_{token_hex(12)}"


def stop_of(
    choice: Mapping[str, Any], notes: Mapping[str, object], *, called: bool
) -> tuple[str, str | None]:
    """The stop reason, and which of the asked sequences ended the answer, where the server says it (vLLM's
    `stop_reason`)."""
    matched, stops = choice.get("stop_reason"), notes.get("stops")
    if isinstance(matched, str) and isinstance(stops, tuple) and matched in stops:
        return "stop_sequence", matched
    reason = _STOPS.get(str(choice.get("finish_reason")), "end_turn")
    return ("tool_use" if called and reason == "end_turn" else reason), None


def tool_use(call: Mapping[str, Any], fallback: str) -> dict[str, Any]:
    """A call's block, as yet without input; a server that gives no id gets `fallback`."""
    function = call.get("function") or {}
    return {
        "type": "tool_use",
        "id": str(call.get("id") or fallback),
        "name": str(function.get("name") or ""),
        "input": {},
    }


def _content(message: Mapping[str, Any], id: str) -> Iterator[dict[str, Any]]:  # noqa: A002 - the answer's
    if (reasoning := reasoning_of(message)) is not None:
        field, text = reasoning
        yield {"type": "thinking", "thinking": text, "signature": signature_of(field)}
    for text in texts_of(message):
        yield {"type": "text", "text": text}
    for place, call in enumerate(message.get("tool_calls") or ()):
        block = tool_use(call, f"{id}_{place}")
        # What is no object cannot be shown as one; the harness will tell the model what is missing.
        block["input"] = as_object(str((call.get("function") or {}).get("arguments") or "")) or {}
        yield block


def texts_of(message: Mapping[str, Any]) -> Iterator[str]:
    """What a message (or a piece of one) says, in whichever shape its content has; a refusal is said too."""
    content = message.get("content")
    parts = (
        [part.get("text") for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    )
    for text in (content, *parts, message.get("refusal")):
        if isinstance(text, str) and text:
            yield text
