"""What an HTTP error of the model server means to a harness that speaks to it in this process."""

from __future__ import annotations

import json
import re

from orchard_core.errors import (
    BudgetExceeded,
    ContextExceeded,
    ModelError,
    ModelRateLimited,
    ModelRejected,
    ModelReplyMalformed,
    ModelTimeout,
    ModelUnavailable,
    SessionClosed,
)

CONTEXT_WORDS = re.compile(
    r"context.{0,12}(length|window|limit|size)|maximum.{0,24}(context|tokens)|prompt is too long|"
    r"too many (input )?tokens|input is too long",
    re.IGNORECASE,
)


def model_error(status: int, body: bytes) -> ModelError:
    """The error that the gateway meant by an HTTP status and its body, in the dialect chat."""
    message, code = _told(body)
    said = f"the model server answered {status}: {message}"
    if code == "budget_exceeded":
        return BudgetExceeded(message, kind="budget", limit=0.0, used=0.0)
    if code == "session_closed":
        return SessionClosed(message)
    if code == "context_length_exceeded" or (status in (400, 413, 422) and CONTEXT_WORDS.search(message)):
        return ContextExceeded(said, status=status, body=message)
    if code == "upstream_malformed":
        return ModelReplyMalformed(said)
    if status == 429:
        return ModelRateLimited(said)
    if status in (408, 504):
        return ModelTimeout(said, limit_s=0.0)
    if status >= 500:
        return ModelUnavailable(said)
    return ModelRejected(said, status=status, body=message)


def _told(body: bytes) -> tuple[str, str]:
    """Message and code, as OpenAI-compatible servers give them; else the body's own words."""
    text = body[:2000].decode("utf-8", "replace")
    try:
        error = json.loads(body)
    except (ValueError, RecursionError):
        return text, ""
    error = error.get("error", error) if isinstance(error, dict) else error
    if not isinstance(error, dict):
        return str(error)[:2000], ""
    return str(error.get("message") or text)[:2000], str(error.get("code") or error.get("type") or "")
