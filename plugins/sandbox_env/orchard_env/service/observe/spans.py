"""Traces as the rest of the service sees them: of OpenTelemetry, or none."""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Mapping
from typing import Protocol

from orchard_core import ConfigError
from orchard_env.service.seams import Making

ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
"""Setting either turns traces on."""
_PARENT = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}")
_NONE = "0" * 32


class RequestSpan(Protocol):
    """One request."""

    @property
    def trace_id(self) -> str:
        """32 hexadecimal digits; empty when it belongs to no trace."""

    def end(self, *, route: str, status: int, tenant: str) -> None:
        """It was answered."""


class Spans(Protocol):
    """Where traces go."""

    def begin(self, method: str, headers: Mapping[str, str]) -> RequestSpan:
        """A request has come; called in its task, whose calls to agents belong to the same trace."""

    def made(self, making: Making) -> None:
        """A sandbox came up or did not; called in the task of the request that asked for it, or in one that
        it started."""

    def close(self) -> None:
        """Send what is left, for a few seconds at most."""


class _Untraced:
    """A request that nobody traces here; its client may."""

    __slots__ = ("trace_id",)

    def __init__(self, trace_id: str) -> None:
        self.trace_id = trace_id

    def end(self, *, route: str, status: int, tenant: str) -> None:
        """See RequestSpan."""


_UNKNOWN = _Untraced("")


class NoSpans:
    """Honours `Spans`: nothing goes anywhere; the trace that a client belongs to still stands in the log."""

    def begin(self, method: str, headers: Mapping[str, str]) -> RequestSpan:
        """See Spans."""
        told = headers.get("traceparent")
        return _UNKNOWN if told is None else _Untraced(trace_of(told))

    def made(self, making: Making) -> None:
        """See Spans."""

    def close(self) -> None:
        """See Spans."""


def trace_of(parent: str) -> str:
    """The trace that a `traceparent` names; empty for one that is none."""
    found = _PARENT.fullmatch(parent)
    return found[1] if found is not None and found[1] != _NONE else ""


def open_spans() -> Spans:
    """OpenTelemetry's where the environment names a receiver, else none. Raises ConfigError without the
    extra."""
    if not any(os.environ.get(name) for name in ENDPOINTS):
        return NoSpans()
    if importlib.util.find_spec("opentelemetry") is None or not _has_exporter():
        raise ConfigError(
            f"{ENDPOINTS[0]} is set, and traces need OpenTelemetry",
            hint="pip install 'orchard-env[otel]', or leave the variable unset",
        )
    from orchard_env.service.observe.otel import OtelSpans

    return OtelSpans()


def _has_exporter() -> bool:
    try:
        return importlib.util.find_spec("opentelemetry.exporter.otlp.proto.http") is not None
    except ModuleNotFoundError:
        return False
