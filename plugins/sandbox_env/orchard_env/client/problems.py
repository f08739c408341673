"""Answers of a service that are no success, as Orchard's errors.

A service of ours names the class. Another one says a status and a `detail`; the status then decides.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

import orchard_core
from orchard_core import (
    AgentRefused,
    ConfigError,
    ExecForgotten,
    FileError,
    OrchardError,
    SandboxConnectionLost,
    SandboxError,
    SandboxExists,
    SandboxGone,
    ServiceOverloaded,
)


class WaitOver(SandboxError):
    """A wait on the server ran out (408); what was waited for goes on."""


class NoSuchCall(ConfigError):
    """The service does not have this call: it speaks less than ours, or is none."""


_BY_STATUS: dict[int, type[OrchardError]] = {
    400: ConfigError,
    401: AgentRefused,
    403: AgentRefused,
    404: SandboxGone,
    405: NoSuchCall,
    408: WaitOver,
    409: SandboxExists,
    410: SandboxGone,
    413: FileError,
    422: ConfigError,
    429: ServiceOverloaded,
    502: SandboxConnectionLost,
    503: ServiceOverloaded,
    504: SandboxConnectionLost,
}
_OURS: dict[str, type[OrchardError]] = {
    "JobUnknown": ExecForgotten,
    "SandboxUnknown": SandboxGone,
    "WaitEnded": WaitOver,
}
_HINTS = {
    401: "set SANDBOX_API_KEY, or give api_key",
    403: "see that the API key is right, and that it may do this",
    429: "come again later, or ask the service's operator for more",
    503: "come again later",
}


def error_of(
    status: int,
    body: bytes,
    headers: Mapping[str, str],
    *,
    where: str,
    missing: type[OrchardError] = SandboxGone,
) -> OrchardError:
    """The error that an answer stands for. `where` names the call; `missing` is what 404 means there, for a
    service that does not say."""
    said = _said(body)
    if status == 404 and said in ({"detail": "Not Found"}, {}):
        missing = NoSuchCall
    kind = _named(str(said.get("error") or "")) or {**_BY_STATUS, 404: missing}.get(status, SandboxError)
    text = (
        said.get("message") or said.get("detail") or body[:200].decode("utf-8", "replace") or "nothing more"
    )
    message = f"{where} was answered {status}: {text if isinstance(text, str) else json.dumps(text)}"
    hint = str(said.get("hint") or _hint(kind, status))
    return make_error(kind, message, hint=hint, retry_after_s=retry_after(headers))


def _hint(kind: type[OrchardError], status: int) -> str:
    if issubclass(kind, SandboxGone):
        return "it was deleted, has expired, or belongs to another key"
    return _HINTS.get(status, "")


def make_error(
    kind: type[OrchardError], message: str, *, hint: str = "", retry_after_s: float | None = None
) -> OrchardError:
    """An error of a class that is known by name only."""
    if issubclass(kind, ServiceOverloaded):
        return kind(message, retry_after_s=retry_after_s, hint=hint)
    return kind(message, hint=hint)


def error_named(name: str, message: str, *, hint: str = "") -> OrchardError:
    """The error of that class; SandboxError where there is none."""
    return make_error(_named(name) or SandboxError, message, hint=hint)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds; the date form is taken for unknown, since clocks differ."""
    try:
        return max(0.0, float(headers.get("Retry-After", "")))
    except ValueError:
        return None


def _said(body: bytes) -> dict[str, object]:
    try:
        said = json.loads(body)
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}


def _named(name: str) -> type[OrchardError] | None:
    kind = _OURS.get(name) or (getattr(orchard_core, name, None) if name else None)
    return kind if isinstance(kind, type) and issubclass(kind, OrchardError) else None
