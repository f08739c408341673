"""What a real service counts of what really happens in it."""

from __future__ import annotations

import time

import httpx
import pytest

from ..running import GENEROUS_S, Running
from .conftest import make
from .samples import Samples, scrape


def test_a_creation_is_counted_with_the_time_of_each_of_its_phases(client: httpx.Client) -> None:
    before = scrape(client)
    make(client)
    after = scrape(client)
    assert after("creates_total", tenant="local", outcome="ready") == before("creates_total") + 1
    for phase in ("queued", "placed", "answered", "furnished"):
        count = after("create_phase_seconds_count", phase=phase)
        assert count == before("create_phase_seconds_count", phase=phase) + 1, phase
    parts = after("create_phase_seconds_sum") - before("create_phase_seconds_sum")
    whole = after("create_seconds_sum") - before("create_seconds_sum")
    assert 0 < parts <= whole + after("create_phase_seconds_sum", phase="queued") + 0.5


def test_a_creation_that_fails_is_counted_with_its_reason_and_whose_doing_it_was(
    client: httpx.Client,
) -> None:
    asked = {"image": "host", "block_network": False, "sandbox_id": "too-much", "cpu": 4}
    client.post("/sandboxes", json=asked).raise_for_status()
    assert client.get("/sandboxes/too-much/wait").status_code == 422
    found = scrape(client)
    assert found("creates_total", outcome="SandboxUnsupported") == 1
    assert found("failures_total", stage="create", reason="SandboxUnsupported", attribution="user") == 1


def test_a_sandbox_that_is_deleted_is_no_failure(client: httpx.Client) -> None:
    name = make(client)
    before = scrape(client)
    client.delete(f"/sandboxes/{name}").raise_for_status()
    after = scrape(client)
    assert after("failures_total") == before("failures_total")
    assert after("sandboxes", state="ready") == before("sandboxes", state="ready") - 1


def test_a_sandbox_that_ends_itself_is_a_failure_of_its_life(client: httpx.Client) -> None:
    name = make(client)
    before = scrape(client)("failures_total", stage="life")
    client.post(f"/sandboxes/{name}/exec", json={"command": "kill -9 $PPID", "wait": True})
    until = time.monotonic() + GENEROUS_S
    while scrape(client)("failures_total", stage="life") == before and time.monotonic() < until:
        client.get(f"/v2/sandboxes/{name}")
    assert scrape(client)("failures_total", stage="life", reason="SandboxGone") == before + 1


@pytest.mark.parametrize(
    ("command", "outcome"), [("true", "succeeded"), ("exit 3", "failed"), ("sleep 100", "timed_out")]
)
def test_a_command_counts_once_with_its_own_time_and_what_the_service_took_besides(
    client: httpx.Client, command: str, outcome: str
) -> None:
    name = make(client)
    before = scrape(client)
    body = {"command": command, "wait": True, "timeout_seconds": 1 if outcome == "timed_out" else None}
    done = client.post(f"/sandboxes/{name}/exec", json=body).raise_for_status().json()
    for _ in range(3):
        client.get(f"/jobs/{done['job_id']}").raise_for_status()
    after = scrape(client)
    assert after("execs_total", outcome=outcome) == before("execs_total", outcome=outcome) + 1
    took = after("exec_seconds_sum") - before("exec_seconds_sum")
    assert took == pytest.approx(done["duration"])
    assert after("exec_overhead_seconds_count") == before("exec_overhead_seconds_count") + 1
    assert after("exec_overhead_seconds_sum") > before("exec_overhead_seconds_sum")


def test_waiting_for_others_in_the_lane_is_no_overhead(client: httpx.Client) -> None:
    name = make(client)
    before = scrape(client)
    client.post(f"/sandboxes/{name}/exec", json={"command": "sleep 1"}).raise_for_status()
    began = time.monotonic()
    client.post(f"/sandboxes/{name}/exec", json={"command": "true", "wait": True}).raise_for_status()
    waited = time.monotonic() - began
    after = scrape(client)
    overhead = after("exec_overhead_seconds_sum") - before("exec_overhead_seconds_sum")
    assert overhead <= waited - 0.8


def test_commands_of_v2_and_of_the_pass_through_count_as_well(client: httpx.Client) -> None:
    name = make(client)
    before = scrape(client)("execs_total")
    second = client.post(f"/v2/sandboxes/{name}/exec", json={"command": "true", "id": "second"})
    assert second.raise_for_status().json()["exit_code"] == 0
    spec = b'{"id": "third", "script": "exit 0"}'
    body = len(spec).to_bytes(4, "big") + spec
    where = f"/v2/sandboxes/{name}/agent/v1/exec"
    for _ in range(2):  # it attaches the second time, and counts once
        client.post(f"{where}?wait=30", content=body).raise_for_status()
        client.get(f"{where}/third").raise_for_status()
    assert scrape(client)("execs_total") == before + 2


def test_requests_are_told_apart_by_templates_and_never_by_what_clients_write(client: httpx.Client) -> None:
    for number in range(30):
        client.get(f"/sandboxes/nobody-{number}")
        client.get(f"/no/such/path/{number}")
    found = scrape(client)
    assert found("requests_total", route="/sandboxes/{sandbox_id}", status="404") >= 30
    assert found("requests_total", route="other", status="404") >= 30
    assert not any("nobody" in value or "such" in value for _, own in found.values for _, value in own)
    assert found("requests_in_flight") == 1


def test_a_response_carries_no_moment_of_birth_beside_each_series(client: httpx.Client) -> None:
    assert not [name for name in scrape(client).names if name.endswith("_created")]


def test_metrics_of_a_service_that_nobody_used_are_metrics_all_the_same(open_service: Running) -> None:
    with open_service.client() as speaking:
        text = speaking.get("/metrics").text
    assert Samples(text)("build_info", provider="process") == 1
