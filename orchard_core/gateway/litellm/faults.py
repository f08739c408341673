"""Errors of LiteLLM as those of the gateway."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from orchard_core.errors import (
    ModelError,
    ModelRateLimited,
    ModelRejected,
    ModelReplyMalformed,
    ModelTimeout,
    ModelUnavailable,
)
from orchard_core.gateway.json_text import dumps_ascii
from orchard_core.gateway.openai_faults import Redactor, retry_after

_REPEATED = frozenset({408, 409, 425})
"""Statuses below 500 that may be gone at the next attempt."""

_CODES = {
    "ContextWindowExceededError": "context_length_exceeded",
    "ContentPolicyViolationError": "content_policy_violation",
    "UnsupportedParamsError": "unsupported_parameter",
    "AuthenticationError": "invalid_api_key",
}
"""Codes that harnesses look for, by LiteLLM's classes."""


def failure(error: Exception, where: str, limit_s: float, redact: Redactor) -> ModelError:
    """The error for one that LiteLLM raised."""
    names = {kind.__name__ for kind in type(error).__mro__}
    status, words = status_of(error), redact(str(getattr(error, "message", "") or error))
    message = f"{where} failed: {words[:500]}"
    if names & {"Timeout", "APITimeoutError"} and not _among(error, {"HTTPStatusError"}):
        return ModelTimeout(message, limit_s=limit_s, hint="give the model a longer timeout_s")
    # A vendor that could not be read is reported by LiteLLM as one that failed.
    if status >= 500 and not _among(error, {"HTTPStatusError", "TransportError", "OSError"}):
        return ModelReplyMalformed(message, hint="check base_url")
    if "RateLimitError" in names and "insufficient_quota" not in words:
        return ModelRateLimited(
            message, retry_after_s=_asked(error), hint="lower `concurrency`, or raise the quota"
        )
    if status >= 500 or status in _REPEATED or "APIConnectionError" in names:
        return ModelUnavailable(message, retry_after_s=_asked(error), hint="look at the vendor's status page")
    code = next((code for name, code in _CODES.items() if name in names), None)
    said = {"message": words, "type": "upstream_error", "param": None, "code": code}
    return ModelRejected(
        message, status=status, body=dumps_ascii({"error": said}), hint=_HINTS.get(status, "")
    )


_HINTS = {
    400: "drop_unsupported=true leaves out parameters that the vendor does not know",
    401: "the vendor does not accept the key: check the variable that holds it",
    403: "the key may not use this model",
    404: "check the model's name as LiteLLM spells it",
}


def status_of(error: Exception) -> int:
    """HTTP status; 500 where none is told."""
    status = getattr(error, "status_code", None)
    return status if isinstance(status, int) and status >= 400 else 500


def _among(error: BaseException | None, names: set[str]) -> bool:
    """Whether the error, or one that led to it, is of a class with such a name."""
    while error is not None:
        if {kind.__name__ for kind in type(error).__mro__} & names:
            return True
        error = error.__cause__ or error.__context__
    return False


def _asked(error: Exception) -> float | None:
    """Seconds that the vendor asks to wait."""
    for headers in (getattr(error, "litellm_response_headers", None), _response_headers(error)):
        if isinstance(headers, Mapping) and headers.get("retry-after"):
            seconds = retry_after(str(headers["retry-after"]), datetime.now(UTC))
            return seconds if seconds is None or math.isfinite(seconds) else None
    return None


def _response_headers(error: Any) -> object:
    return getattr(getattr(error, "response", None), "headers", None)
