"""What an API server's refusal means, as a typed error that names the right, quota or field in the way."""

from __future__ import annotations

import re
from typing import Any

import orjson

from orchard_core import (
    OrchardError,
    QuotaExceeded,
    SandboxError,
    SandboxExists,
    SandboxUnavailable,
    ServiceOverloaded,
    SpecRefused,
)

_RIGHT = re.compile(
    r'User "(?P<who>[^"]*)" cannot (?P<verb>\S+) resource "(?P<what>[^"]*)" in API group "(?P<group>[^"]*)"'
    r'(?: in the namespace "(?P<where>[^"]*)")?'
)
_POLICY = re.compile(
    r"violates PodSecurity|admission webhook|usage per|is forbidden: (?!User )", re.IGNORECASE
)


class ObjectExists(SandboxExists):
    """An object of this kind and name stands already, and this call did not make it."""


class ObjectMissing(SandboxError):
    """There is no such object (any more)."""


class ObjectChanged(SandboxError):
    """The object is no longer at the resourceVersion or uid that the call spoke of: read it and think again.

    `unsure`: an earlier try of the same call was lost on its way and may be what changed it.
    """

    def __init__(self, message: str, *, unsure: bool = False, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.unsure = unsure


class HistoryGone(SandboxError):
    """The server no longer knows the resourceVersion asked for (410): list again."""


def refusal(
    status: int, body: bytes | dict[str, Any], what: str, *, retry_after_s: float | None = None
) -> OrchardError:
    """The error of a bad answer. `what` says what was tried, such as "create pods sandbox-1"."""
    said = body if isinstance(body, dict) else _status_object(body)
    reason, words = str(said.get("reason") or ""), str(said.get("message") or f"HTTP {status}")
    told = f"cannot {what}: {words}"
    if status == 401:
        return SandboxUnavailable(
            f"the cluster does not accept these credentials ({words}), wanted to {what}",
            hint="renew them (kubectl auth whoami, or the service account's token), then try again",
        )
    if status == 403:
        return _forbidden(told, words)
    if status == 404:
        return ObjectMissing(told)
    if status == 409:
        return ObjectExists(told) if reason == "AlreadyExists" else ObjectChanged(told)
    if status == 410:
        return HistoryGone(told)
    if status in {429, 500, 502, 503, 504}:
        return ServiceOverloaded(
            told, retry_after_s=retry_after_s, hint="the API server has trouble: try again"
        )
    return SpecRefused(told, hint="mend the field that the message names")


def _forbidden(told: str, words: str) -> OrchardError:
    if "exceeded quota" in words or "insufficient quota" in words:
        return QuotaExceeded(told, hint="wait until sandboxes end, ask for less, or raise the ResourceQuota")
    if "status unknown for quota" in words:
        return ServiceOverloaded(
            told, retry_after_s=1.0, hint="the quota is new and not counted yet: try again"
        )
    if "is being terminated" in words:
        return SandboxUnavailable(told, hint="the namespace is being deleted: use another")
    right = _RIGHT.search(words)
    if right is not None:
        group = f".{right['group']}" if right["group"] else ""
        where = f" in the namespace {right['where']}" if right["where"] else ""
        verb, what = right["verb"], right["what"]
        return SandboxUnavailable(
            f"{right['who']} lacks the right to {verb} {what}{group}{where}",
            hint=f"grant it: kubectl create role NAME --verb={verb} --resource={what}{group}, and bind it",
        )
    if _POLICY.search(words):
        return SpecRefused(told, hint="a policy of the cluster is against it: mend what the message names")
    return SandboxUnavailable(told, hint="ask the cluster's owner for this right")


def _status_object(body: bytes) -> dict[str, Any]:
    try:
        said = orjson.loads(body)
    except orjson.JSONDecodeError:
        said = None
    # A proxy before the server answers in its own format.
    return said if isinstance(said, dict) else {"message": body[:300].decode("utf-8", "replace").strip()}
