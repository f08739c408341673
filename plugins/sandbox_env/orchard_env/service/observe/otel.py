"""Traces by OpenTelemetry, sent by OTLP over HTTP. Everything else is set by its own OTEL_ variables."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from opentelemetry import context as contexts
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from orchard_core import __version__, watch_agent_calls
from orchard_env.service.observe.metrics import phases
from orchard_env.service.observe.spans import RequestSpan
from orchard_env.service.seams import Making

_W3C = TraceContextTextMapPropagator()
_NANO = 1_000_000_000
_FLUSH_MS = 5000
_UNSENT = "traceparent", "tracestate"


class OtelSpans:
    """Honours `Spans`. A span is made in microseconds and sent from a thread of its own."""

    def __init__(self) -> None:
        name = {"service.name": "orchard-env", "service.version": __version__}
        self._provider = TracerProvider(resource=Resource(name).merge(Resource.create(name)))
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer("orchard_env", __version__)

    def begin(self, method: str, headers: Mapping[str, str]) -> RequestSpan:
        """See Spans."""
        told = {name: headers[name] for name in _UNSENT if name in headers}
        parent = _W3C.extract(told, context=contexts.Context())
        span = self._tracer.start_span(method, context=parent, kind=SpanKind.SERVER)
        contexts.attach(trace.set_span_in_context(span))  # the task is the request's own, and ends with it
        watch_agent_calls(self._watch)
        return _OtelRequest(span, method)

    @contextmanager
    def _watch(self, method: str, path: str) -> Iterator[_OtelCall]:
        """A call to an agent, from its beginning until its answer is read."""
        about = {"http.request.method": method, "url.path": _template(path)}
        span = self._tracer.start_span(f"agent {method}", kind=SpanKind.CLIENT, attributes=about)
        try:
            yield _OtelCall(span)
        except BaseException as error:
            span.set_attribute("error.type", type(error).__name__)
            span.set_status(Status(StatusCode.ERROR))
            raise
        finally:
            span.end()

    def made(self, making: Making) -> None:
        """See Spans. One span for the creation, and one within it for each phase."""
        end = time.time_ns()
        turn = end - int(making.seconds * _NANO)
        span = self._tracer.start_span(
            "create sandbox",
            start_time=turn - int(making.queued_s * _NANO),
            attributes={"orchard.sandbox": making.sandbox_id, "orchard.tenant": making.tenant},
        )
        if making.fault is not None:
            span.set_attribute("error.type", type(making.fault).__name__)
            span.set_status(Status(StatusCode.ERROR))
        inside = trace.set_span_in_context(span)
        at = turn - int(making.queued_s * _NANO)
        for phase, seconds in phases(making).items():
            part = self._tracer.start_span(phase, context=inside, start_time=at)
            at += int(seconds * _NANO)
            part.end(end_time=at)
        span.end(end_time=end)

    def close(self) -> None:
        """See Spans."""
        self._provider.force_flush(_FLUSH_MS)
        self._provider.shutdown()


class _OtelRequest:
    """One request's span."""

    def __init__(self, span: trace.Span, method: str) -> None:
        self._span = span
        self._method = method
        self.trace_id = trace.format_trace_id(span.get_span_context().trace_id)

    def end(self, *, route: str, status: int, tenant: str) -> None:
        """See RequestSpan."""
        self._span.update_name(f"{self._method} {route}")
        self._span.set_attributes(
            {
                "http.request.method": self._method,
                "http.route": route,
                "http.response.status_code": status,
                "orchard.tenant": tenant,
            }
        )
        if status >= 500 or not status:
            self._span.set_status(Status(StatusCode.ERROR))
        self._span.end()


class _OtelCall:
    """One call to an agent."""

    def __init__(self, span: trace.Span) -> None:
        self._span = span
        self.headers: dict[str, str] = {}
        _W3C.inject(self.headers, context=trace.set_span_in_context(span))

    def answered(self, status: int) -> None:
        """See WatchedCall."""
        self._span.set_attribute("http.response.status_code", status)


def _template(path: str) -> str:
    """A path of the agent without the ids of runs, which would make each its own."""
    parts = path.split("/")
    if len(parts) > 3 and parts[2] == "exec":
        parts[3] = "{id}"
    return "/".join(parts)[:200]
