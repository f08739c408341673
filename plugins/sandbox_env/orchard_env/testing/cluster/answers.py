"""What the server says: objects, and refusals in a real server's own words."""

from __future__ import annotations

from typing import Any

import orjson
from aiohttp import web

_REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    410: "Expired",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


class Refused(Exception):
    """Answered with a Status object."""

    def __init__(
        self, code: int, message: str, *, reason: str = "", retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.status = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": message,
            "reason": reason or _REASONS.get(code, "Unknown"),
            "code": code,
        }
        self.retry_after = retry_after

    def answer(self) -> web.Response:
        headers = {} if self.retry_after is None else {"Retry-After": f"{self.retry_after:g}"}
        return said(self.status, self.code, headers)


def said(value: object, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    """A JSON answer."""
    return web.Response(
        body=orjson.dumps(value), status=status, content_type="application/json", headers=headers or {}
    )


def merged(old: Any, patch: Any) -> Any:
    """RFC 7386: a JSON merge patch."""
    if not isinstance(patch, dict):
        return patch
    result = dict(old) if isinstance(old, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result
