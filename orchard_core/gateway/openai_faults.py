"""What a server's error answer means."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from orchard_core.errors import ModelError, ModelRateLimited, ModelRejected, ModelUnavailable
from orchard_core.gateway.wire import Response

_REPEATED = frozenset({408, 409, 425, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529})
"""Statuses that may be gone at the next attempt (52x and 529 are what CDNs and busy model servers use)."""


class Redactor:
    """Takes secrets out of texts."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self._secrets = sorted((secret for secret in secrets if len(secret) >= 4), key=len, reverse=True)

    def __call__(self, text: str) -> str:
        """The text with each secret replaced."""
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text

    def answer(self, data: bytes) -> bytes:
        """The same for an answer's JSON that may report an error; what reports none passes untouched."""
        if b'"error"' not in data or _reports(data) is None:
            return data
        for secret in self._secrets:
            data = data.replace(secret.encode(), b"***")
        return data


_reports = re.compile(rb'"error"(?!\s*:\s*null)').search
"""Within a text of the model's, a quote is escaped."""


def failure(response: Response, body: bytes, url: str, redact: Redactor) -> ModelError:
    """The error for an answer that is not 200."""
    status = response.status
    words = redact(body.decode("utf-8", "replace"))
    message = f"{url} answered {status}: {words[:500]}"
    asked_s = retry_after(response.headers.get("retry-after"), datetime.now(UTC))
    if status == 429 and "insufficient_quota" not in words:
        return ModelRateLimited(
            message, retry_after_s=asked_s, hint="lower `concurrency`, or raise the quota"
        )
    if status in _REPEATED:
        return ModelUnavailable(message, retry_after_s=asked_s, hint="look at the model server's log")
    return ModelRejected(message, status=status, body=words, hint=_HINTS.get(status, ""))


_HINTS = {
    401: "the model server does not accept the key: check the variable that holds it",
    403: "the key may not use this model",
    404: "check the base URL (it ends in /v1 for most servers) and the model's name",
    429: "the account's quota is used up",
}


def retry_after(value: str | None, now: datetime) -> float | None:
    """Seconds that a Retry-After header asks for, whether in seconds or as a date; None for none."""
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            then = parsedate_to_datetime(value)
        except ValueError:
            return None
        seconds = (then.replace(tzinfo=then.tzinfo or UTC) - now).total_seconds()
    return max(0.0, seconds) if math.isfinite(seconds) else None
