"""Errors in Anthropic's shape."""

from __future__ import annotations

from orchard_core.gateway.faults import Fault
from orchard_core.gateway.json_text import dumps_ascii, loads
from orchard_core.gateway.sse import framed

_KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
"""Error types by HTTP status, as Anthropic's reference pairs them."""

_TOO_LONG = frozenset({"context_length_exceeded", "string_above_max_length"})
"""Codes of OpenAI's family for a prompt over the model's window."""


def messages_fault(fault: Fault) -> bytes:
    """The body of an error; an upstream that spoke this dialect itself is quoted word for word."""
    words = loads(fault.words) if fault.words is not None else {}
    if words.get("type") == "error":
        return (fault.words or "").encode()
    error = {"type": _kind(fault.status), "message": _message(fault, words.get("error", {}))}
    return b'{"type":"error","error":%b}' % dumps_ascii(error).encode()


def messages_failed(fault: Fault) -> bytes:
    """The event that ends a stream with an error."""
    return framed(messages_fault(fault), "error")


def _kind(status: int) -> str:
    return _KINDS.get(status, "invalid_request_error" if status < 500 else "api_error")


def _message(fault: Fault, error: dict[str, object]) -> str:
    """Clients of this dialect know a full window by its words, and then shorten the conversation."""
    said = error.get("message")
    message = said if isinstance(said, str) and said else fault.message
    return f"prompt is too long: {message}" if error.get("code") in _TOO_LONG else message
