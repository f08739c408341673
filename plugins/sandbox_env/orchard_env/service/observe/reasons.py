"""Whose doing a failure is, by its class."""

from __future__ import annotations

from orchard_core import (
    ImagePullFailed,
    OrchardError,
    QuotaExceeded,
    SandboxEvicted,
    SandboxExists,
    SandboxExpired,
    SandboxGone,
    SandboxUnsupported,
    SpecRefused,
)

_USER = (QuotaExceeded, SandboxExists, SandboxUnsupported, SpecRefused, ImagePullFailed, SandboxExpired)
"""What was asked for could not be had, or its time was over."""


def attribution(fault: OrchardError) -> str:
    """`user`, `agent` (what ran inside), or `infrastructure`."""
    if isinstance(fault, _USER):
        return "user"
    if isinstance(fault, SandboxGone) and fault.by == "agent" and not isinstance(fault, SandboxEvicted):
        return "agent"
    return "infrastructure"
