"""Traces of a real service, at a real receiver; and what stands in its log about them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from orchard_env.service.observe.spans import NoSpans, trace_of

from ..running import GENEROUS_S
from .otlp import Received, Span, receiver

ORCHARD = [sys.executable, "-m", "orchard_core.cli.main", "serve", "--provider", "process"]
TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
CLIENT = {"traceparent": f"00-{TRACE}-{PARENT}-01", "X-Request-ID": "my-own-id"}


@contextmanager
def serving(**env: str) -> Iterator[tuple[httpx.Client, list[dict[str, Any]]]]:
    """The command, and its log once it has ended."""
    log: list[dict[str, Any]] = []
    process = subprocess.Popen(
        [*ORCHARD, "--port", "0", "--json"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **env},
    )  # fmt: skip
    assert process.stdout is not None
    try:
        with httpx.Client(
            base_url=json.loads(process.stdout.readline())["url"], timeout=GENEROUS_S
        ) as client:
            yield client, log
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=GENEROUS_S)
        log += [json.loads(line) for line in said.splitlines()]
    finally:
        process.kill()
        process.communicate()


def used(client: httpx.Client) -> None:
    """A sandbox, a command, and something that is not there."""
    made = {"image": "host", "block_network": False, "sandbox_id": "traced"}
    client.post("/sandboxes", json=made, headers=CLIENT).raise_for_status()
    client.get("/sandboxes/traced/wait", headers=CLIENT).raise_for_status()
    body = {"command": "echo secret-of-mine", "wait": True, "exec_id": "a-run"}
    client.post("/sandboxes/traced/exec", json=body, headers=CLIENT).raise_for_status()
    client.get("/sandboxes/nobody?api_key=query-secret", headers=CLIENT)


@pytest.fixture(scope="module")
def traced() -> Iterator[tuple[Received, list[dict[str, Any]]]]:
    """What came at the receiver, and the log."""
    with receiver() as received:
        with serving(OTEL_EXPORTER_OTLP_ENDPOINT=received.url) as (client, log):
            used(client)
        yield received, log


def one(received: Received, name: str) -> Span:
    """The only span of that name."""
    (found,) = received.named(name)
    return found


Traced = tuple[Received, list[dict[str, Any]]]


@pytest.mark.slow
@pytest.mark.xdist_group("tracing")
def test_a_clients_trace_goes_on_through_the_service_to_the_agents_calls(traced: Traced) -> None:
    received, _ = traced
    request = one(received, "POST /sandboxes/{sandbox_id}/exec")
    assert (request.trace, request.parent) == (TRACE, PARENT)
    assert request.about["http.response.status_code"] == 200
    assert request.about["orchard.tenant"] == "local"
    calls = [span for span in received.named("agent POST") if span.parent == request.id]
    assert [span.about["url.path"] for span in calls] == ["/v1/exec"]
    assert {span.trace for span in received.spans} == {TRACE}


@pytest.mark.slow
@pytest.mark.xdist_group("tracing")
def test_a_creation_is_a_span_with_its_phases_in_their_order(traced: Traced) -> None:
    received, _ = traced
    made = one(received, "create sandbox")
    assert made.parent == one(received, "POST /sandboxes").id
    assert made.about["orchard.sandbox"] == "traced"
    phases = [span for span in received.spans if span.parent == made.id]
    ordered = sorted(phases, key=lambda span: span.times)
    assert [span.name for span in ordered] == ["queued", "placed", "answered", "furnished"]
    assert all(made.times[0] <= span.times[0] <= span.times[1] <= made.times[1] for span in phases)


@pytest.mark.slow
@pytest.mark.xdist_group("tracing")
def test_every_line_of_the_log_names_request_and_trace_and_no_secret(traced: Traced) -> None:
    received, log = traced
    lines = [line for line in log if line["message"] == "request"]
    assert {(line["request_id"], line["trace_id"]) for line in lines} == {("my-own-id", TRACE)}
    told = json.dumps(log) + json.dumps([(span.name, span.about) for span in received.spans], default=str)
    assert "secret" not in told
    assert "a-run" not in json.dumps([span.about for span in received.spans], default=str)


@pytest.mark.slow
def test_a_receiver_that_is_away_costs_nobody_anything() -> None:
    with serving(OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9", OTEL_EXPORTER_OTLP_TIMEOUT="1") as (
        client,
        _,
    ):
        used(client)
        assert client.get("/health").json()["status"] == "ok"


def test_without_a_receiver_a_clients_trace_stands_in_the_log_all_the_same() -> None:
    span = NoSpans().begin("GET", {"traceparent": CLIENT["traceparent"]})
    assert span.trace_id == TRACE
    assert NoSpans().begin("GET", {}).trace_id == ""


@pytest.mark.parametrize(
    "told",
    ["", "x", f"00-{'0' * 32}-{PARENT}-01", f"00-{TRACE.upper()}-{PARENT}-01", f"00-{TRACE}-{PARENT}-01\n",
     "00-" + "\u0660" * 32 + f"-{PARENT}-01"],
)  # fmt: skip
def test_what_is_no_trace_is_none(told: str) -> None:
    assert trace_of(told) == ""


def test_a_missing_extra_is_told_with_what_mends_it(tmp_path: object) -> None:
    """An interpreter that cannot see the packages, as after an installation without the extra."""
    code = (
        "import sys; sys.modules['opentelemetry'] = None\n"
        "from orchard_env.service.observe.spans import open_spans\n"
        "from orchard_core import ConfigError\n"
        "try: open_spans()\n"
        "except ConfigError as error: print(error.message, error.hint)\n"
    )
    env = {**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert "pip install 'orchard-env[otel]'" in done.stdout
