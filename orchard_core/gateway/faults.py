"""Errors before they take a dialect's shape, and the redaction of keys."""

from __future__ import annotations

import re
from dataclasses import dataclass

from orchard_core.errors import (
    BudgetExceeded,
    ModelError,
    ModelRateLimited,
    ModelRejected,
    ModelReplyMalformed,
    ModelTimeout,
    ModelUnavailable,
    SessionClosed,
)
from orchard_core.gateway.json_text import JsonFault, dumps_ascii, loads

KEY_PREFIX = "sk-orchard-"
"""Every session key begins with it, so that one that strays is recognised."""

_key = re.compile(re.escape(KEY_PREFIX) + r"[A-Za-z0-9_-]+")


def redact(text: str) -> str:
    """The text without session keys, and fit to be stored: lone surrogates become escapes."""
    text = text.encode("utf-8", "backslashreplace").decode()
    return _key.sub(f"{KEY_PREFIX}***", text) if KEY_PREFIX in text else text


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """An error answer. A codec's `fault` gives it its dialect's shape."""

    status: int
    """HTTP status."""
    kind: str
    """OpenAI's error type, such as `invalid_request_error`."""
    code: str
    """What went wrong, for programs."""
    message: str
    """For people; keys are redacted."""
    words: str | None = None
    """The upstream's own error body, a JSON object with an `error` object in it; keys are redacted."""


def fault(status: int, message: str, *, kind: str, code: str, words: str | None = None) -> Fault:
    """An error whose message may be shown."""
    return Fault(status=status, kind=kind, code=code, message=redact(message), words=words)


def openai_body(fault: Fault) -> bytes:
    """The error in OpenAI's shape, which chat and responses share: the upstream's own words where it gave
    any, for harnesses look for codes in them."""
    if fault.words is not None:
        return fault.words.encode()
    error = {"message": fault.message, "type": fault.kind, "param": None, "code": fault.code}
    return b'{"error":%b}' % dumps_ascii(error).encode()


def invalid(message: str, *, status: int = 400, code: str = "invalid_request") -> Fault:
    """The client sent something wrong."""
    return fault(status, message, kind="invalid_request_error", code=code)


def too_many(limit: int) -> Fault:
    """The session has as many requests open as it may; with `x-should-retry: false` like all others."""
    message = f"this key has {limit} requests open, which is the most: wait for the end of one"
    return fault(429, message, kind="rate_limit_error", code="too_many_open_calls")


def of(error: ModelError) -> Fault:
    """The answer for a failed call.

    A used-up budget is 403: clients repeat 408, 409, 429 and 5xx, and some repeat 402 too.
    """
    text = str(error)
    match error:
        case BudgetExceeded():
            return fault(403, text, kind="budget_exceeded", code="budget_exceeded")
        case SessionClosed():
            return fault(403, text, kind="session_closed", code="session_closed")
        case ModelRateLimited():
            return fault(429, text, kind="rate_limit_error", code="rate_limited")
        case ModelTimeout():
            return fault(504, text, kind="timeout", code="upstream_timeout")
        case ModelRejected():
            return _rejected(error)
        case ModelReplyMalformed():
            return fault(502, text, kind="upstream_error", code="upstream_malformed")
        case ModelUnavailable():
            return fault(502, text, kind="upstream_error", code="upstream_unavailable")
        case _:
            return fault(502, text, kind="upstream_error", code="upstream_error")


def _rejected(error: ModelRejected) -> Fault:
    """With the upstream's own words where they have the right shape."""
    status = error.status if 400 <= error.status < 500 else 502
    try:
        words = loads(error.body) if error.body else None
    except JsonFault:
        words = None
    own = isinstance(words, dict) and isinstance(words.get("error"), dict)
    return fault(
        status,
        str(error),
        kind="upstream_error",
        code="upstream_rejected",
        words=redact(dumps_ascii(words)) if own else None,
    )
