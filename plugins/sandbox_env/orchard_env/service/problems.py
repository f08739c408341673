"""Every error as an HTTP answer. The status is the contract; the message says what, where and what next."""

from __future__ import annotations

import math

import orjson
from starlette.responses import Response

from orchard_core import (
    AgentRefused,
    ConfigError,
    CreateTimedOut,
    DeadlineExceeded,
    DiskFull,
    ExecError,
    ExecForgotten,
    ExecIdTaken,
    FileDenied,
    FileError,
    FileExists,
    FileMissing,
    ImagePullFailed,
    NotAnAgent,
    OrchardError,
    PortRefused,
    QuotaExceeded,
    RangeRefused,
    SandboxConnectionLost,
    SandboxCreateFailed,
    SandboxError,
    SandboxExists,
    SandboxGone,
    SandboxUnavailable,
    SandboxUnsupported,
    SnapshotMissing,
    SpecRefused,
    StdinClosed,
    Unschedulable,
)
from orchard_env.service.faults import ServiceFault

_STATUS: tuple[tuple[type[OrchardError], int], ...] = (
    (ConfigError, 422),
    (SandboxUnsupported, 422),
    (SandboxExists, 409),
    (SandboxUnavailable, 503),
    (QuotaExceeded, 429),
    (ImagePullFailed, 422),
    (SpecRefused, 422),
    (Unschedulable, 503),
    (CreateTimedOut, 408),
    (SandboxCreateFailed, 502),
    (SandboxGone, 410),
    (SnapshotMissing, 404),
    (NotAnAgent, 502),
    (SandboxConnectionLost, 503),
    (AgentRefused, 502),
    (PortRefused, 409),
    (ExecIdTaken, 409),
    (ExecForgotten, 404),
    (StdinClosed, 409),
    (ExecError, 422),
    (FileMissing, 404),
    (FileExists, 409),
    (FileDenied, 403),
    (RangeRefused, 416),
    (DiskFull, 413),
    (FileError, 422),
    (SandboxError, 502),
    (DeadlineExceeded, 408),
)
"""The first class that fits decides; what fits none is ours to mend: 500."""

_RETRY_S = 2.0
"""When to come again after a 503 that does not say so itself."""


def status_of(error: OrchardError) -> int:
    """The HTTP status that tells this error."""
    if isinstance(error, ServiceFault):
        return error.status
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 500)


def retry_after(error: OrchardError) -> float | None:
    """Seconds after which the same request may do better; None where it will not."""
    asked = getattr(error, "retry_after_s", None)
    if isinstance(asked, int | float):
        return float(asked)
    return _RETRY_S if status_of(error) in (503, 429) else None


def problem(error: OrchardError, request_id: str) -> Response:
    """The answer that tells this error. `detail` is what FastAPI's clients read."""
    return _answer(
        status_of(error), type(error).__name__, error.message, error.hint, request_id, retry_after(error)
    )


def unforeseen(request_id: str) -> Response:
    """The answer to a bug of ours. The log has the rest, under the same id."""
    return _answer(
        500,
        "InternalError",
        "the service failed at this in a way that it did not foresee",
        f"tell its operator the request id {request_id}",
        request_id,
        None,
    )


def refused(status: int, message: str, request_id: str) -> Response:
    """The answer to what is no request of this API: an unknown path, a wrong method."""
    return _answer(status, "RequestInvalid", message, "GET /openapi.json lists every call", request_id, None)


def _answer(
    status: int, code: str, message: str, hint: str, request_id: str, retry_s: float | None
) -> Response:
    body = {
        "detail": message,
        "error": code,
        "message": message,
        "hint": hint,
        "request_id": request_id,
    }
    headers = {"Retry-After": str(max(1, math.ceil(retry_s)))} if retry_s is not None else None
    return Response(encoded(body), status, headers=headers, media_type="application/json")


def encoded(value: object) -> bytes:
    """As JSON. Half a surrogate pair, which no JSON can carry, becomes U+FFFD."""
    try:
        return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS)
    except TypeError:
        return orjson.dumps(_mended(value), option=orjson.OPT_NON_STR_KEYS)


def _mended(value: object) -> object:
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    if isinstance(value, dict):
        return {_mended(key): _mended(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_mended(item) for item in value]
    return value
