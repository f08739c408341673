"""A tiny real receiver of traces: OTLP over HTTP, as a collector takes it."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Received:
    """Every span that came."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.spans: list[Span] = []

    def named(self, name: str) -> list[Span]:
        """Those of that name."""
        return [span for span in self.spans if span.name == name]


class Span:
    """One span, plainly."""

    def __init__(self, told: object) -> None:
        self.name: str = told.name  # type: ignore[attr-defined]
        self.id: str = told.span_id.hex()  # type: ignore[attr-defined]
        self.parent: str = told.parent_span_id.hex()  # type: ignore[attr-defined]
        self.trace: str = told.trace_id.hex()  # type: ignore[attr-defined]
        self.failed: bool = told.status.code == 2  # type: ignore[attr-defined]
        self.times = (told.start_time_unix_nano, told.end_time_unix_nano)  # type: ignore[attr-defined]
        self.about = {
            one.key: one.value.string_value or one.value.int_value
            for one in told.attributes  # type: ignore[attr-defined]
        }


@contextmanager
def receiver() -> Iterator[Received]:
    """It, until left."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                raw = gzip.decompress(raw)
            request = ExportTraceServiceRequest.FromString(raw)
            for resource in request.resource_spans:
                for scope in resource.scope_spans:
                    received.spans += [Span(span) for span in scope.spans]
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    received = Received(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield received
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
