"""Services that end, are killed, or are several: what stands and what runs is nobody's to lose."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from orchard_env.service.seams import Tenant
from orchard_env.service.services import Services

from .running import GENEROUS_S, KnownKeys, parts_of, running, until
from .standing_agents import break_lists, end_all, standing_provider

KEYS = {"key-a": Tenant(name="a"), "key-b": Tenant(name="b")}


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    """Where the sandboxes stand."""
    yield tmp_path
    end_all(tmp_path)


def replica(root: Path) -> Any:
    """A service over what stands there; the caller is tenant a."""
    return running(lambda: parts_of(standing_provider(root), tenancy=KnownKeys(**KEYS)), key="key-a")


class Killable:
    """A service in a process of its own."""

    def __init__(self, root: Path) -> None:
        script = Path(__file__).parent / "standing_service.py"
        self.process = subprocess.Popen(
            [sys.executable, str(script), str(root)], stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self.client = httpx.Client(base_url=self.process.stdout.readline().strip(), timeout=GENEROUS_S)

    def end(self, how: int) -> int:
        """Send a signal, and wait for the end."""
        self.process.send_signal(how)
        return self.process.wait(GENEROUS_S)


@contextmanager
def killable(root: Path) -> Iterator[Killable]:
    """A service in a process of its own, gone when left."""
    served = Killable(root)
    try:
        yield served
    finally:
        served.client.close()
        served.process.kill()
        served.process.wait()


def make(client: httpx.Client, **fields: Any) -> str:
    """A sandbox that is ready."""
    asked = {"image": "host", "block_network": True, **fields}
    made = client.post("/sandboxes", json=asked).raise_for_status().json()["sandbox_id"]
    client.get(f"/sandboxes/{made}/wait").raise_for_status()
    return str(made)


def start(client: httpx.Client, sandbox: str, command: str, **fields: Any) -> str:
    """A command that is left to itself."""
    answer = client.post(f"/sandboxes/{sandbox}/exec", json={"command": command, **fields})
    return str(answer.raise_for_status().json()["job_id"])


def ended(client: httpx.Client, job: str) -> dict[str, Any]:
    """A job at its end."""
    told = client.get(f"/jobs/{job}/wait", params={"timeout": 60}).raise_for_status().json()
    assert told["status"] in ("succeeded", "failed"), told
    return dict(told)


def let_go(root: Path, sandbox: str) -> None:
    """Let the command `WAIT` end."""
    (root / sandbox / "work" / "go").touch()


WAIT = "until [ -e go ]; do sleep 0.02; done; echo went"


def test_a_service_that_is_told_to_end_leaves_everything_to_the_next(root: Path) -> None:
    with replica(root) as first, first.client() as client:
        sandbox = make(client, cpu="2000m", memory="1Gi", labels={"mine": "yes"}, timeout=60)
        before = client.get(f"/sandboxes/{sandbox}").json()
        job = start(client, sandbox, WAIT)
    with replica(root) as second, second.client() as client:
        assert client.get(f"/sandboxes/{sandbox}").json() == before
        told = client.get(f"/jobs/{job}").json()
        assert (told["status"], told["command"]) == ("running", WAIT)
        let_go(root, sandbox)
        assert ended(client, job)["stdout"] == "went\n"


def test_what_nobody_has_asked_for_since_a_restart_is_listed(root: Path) -> None:
    with replica(root) as first, first.client() as client:
        made = {make(client), make(client)}
    with replica(root) as second, second.client() as client:
        listed = client.get("/v2/sandboxes").raise_for_status().json()["sandboxes"]
        assert {one["id"] for one in listed} == made
        assert {one["status"] for one in listed} == {"ready"}


def test_a_tenants_sandboxes_are_its_own_after_a_restart_too(root: Path) -> None:
    with replica(root) as first, first.client() as client:
        sandbox = make(client)
        job = start(client, sandbox, "echo secret")
    with replica(root) as second, second.client(key="key-b") as other:
        assert other.get(f"/sandboxes/{sandbox}").status_code == 404
        assert other.get(f"/jobs/{job}").status_code == 404
        assert other.post(f"/sandboxes/{sandbox}/exec", json={"command": "true"}).status_code == 404
        assert other.delete(f"/sandboxes/{sandbox}").status_code == 404
        taken = other.post("/sandboxes", json={"image": "host", "sandbox_id": sandbox})
        assert taken.status_code == 409
        with second.client() as owner:
            assert ended(owner, job)["stdout"] == "secret\n"


def test_a_killed_service_loses_no_job_and_repeats_none(root: Path) -> None:
    with killable(root) as first:
        sandbox = make(first.client)
        order = {"command": f"echo ran >> runs; {WAIT}", "exec_id": "once"}
        running_job = start(first.client, sandbox, order["command"], exec_id="once")
        queued_job = start(first.client, sandbox, "echo after >> runs")
        first.end(signal.SIGKILL)
    with killable(root) as second:
        assert second.client.get(f"/jobs/{running_job}").json()["status"] == "running"
        assert second.client.get(f"/jobs/{queued_job}").json()["status"] == "queued"
        assert start(second.client, sandbox, order["command"], exec_id="once") == running_job
        let_go(root, sandbox)
        assert ended(second.client, queued_job)["status"] == "succeeded"
        assert ended(second.client, running_job)["stdout"] == "went\n"
    assert (root / sandbox / "work" / "runs").read_text() == "ran\nafter\n"


@pytest.mark.slow
def test_who_waits_for_a_job_is_let_go_when_the_service_ends_and_goes_on_at_the_next(root: Path) -> None:
    with killable(root) as first, ThreadPoolExecutor() as threads:
        sandbox = make(first.client)
        body = {"command": WAIT, "wait": True, "exec_id": "long"}
        waiting = threads.submit(first.client.post, f"/sandboxes/{sandbox}/exec", json=body)
        with httpx.Client(base_url=first.client.base_url) as other:
            until(lambda: other.get(f"/jobs/{sandbox}.long").status_code == 200, "the job is known")
        assert first.end(signal.SIGTERM) == 0
        assert waiting.result(GENEROUS_S).json()["status"] == "running"
    with killable(root) as second:
        let_go(root, sandbox)
        assert second.client.post(f"/sandboxes/{sandbox}/exec", json=body).json()["stdout"] == "went\n"


@pytest.mark.slow
def test_sigterm_ends_a_service_in_good_order_and_nothing_else(root: Path) -> None:
    with killable(root) as first:
        sandbox = make(first.client)
        job = start(first.client, sandbox, WAIT)
        assert first.end(signal.SIGTERM) == 0
    with killable(root) as second:
        let_go(root, sandbox)
        assert ended(second.client, job)["stdout"] == "went\n"


@pytest.mark.slow
def test_a_service_killed_while_it_makes_a_sandbox_leaves_one_that_can_be_found_or_none(root: Path) -> None:
    with killable(root) as first:
        first.client.post("/sandboxes", json={"image": "host", "sandbox_id": "half"}).raise_for_status()
        first.end(signal.SIGKILL)
    with killable(root) as second:
        assert second.client.get("/sandboxes/half").status_code in (200, 404)


def test_a_list_that_fails_changes_nothing(root: Path) -> None:
    with replica(root) as first, first.client() as client:
        sandbox = make(client)
    with replica(root) as second, second.client() as client:
        break_lists(root, True)
        unknown = client.get(f"/sandboxes/{sandbox}")
        assert unknown.status_code == 503
        assert int(unknown.headers["retry-after"]) >= 1
        assert client.post("/sandboxes", json={"image": "host", "sandbox_id": sandbox}).status_code == 503
        break_lists(root, False)
        assert client.get(f"/sandboxes/{sandbox}").json()["status"] == "ready"
        break_lists(root, True)
        assert ended(client, start(client, sandbox, "echo on"))["stdout"] == "on\n"
        break_lists(root, False)


@contextmanager
def two(root: Path) -> Iterator[tuple[httpx.Client, httpx.Client]]:
    """Clients of two services over the same sandboxes."""
    with replica(root) as first, replica(root) as second, first.client() as one, second.client() as other:
        yield one, other


def test_what_one_replica_makes_every_replica_serves(root: Path) -> None:
    with two(root) as (one, other):
        sandbox = make(one)
        job = start(one, sandbox, WAIT)
        after = start(other, sandbox, "echo after")
        assert other.get(f"/jobs/{after}").json()["status"] == "queued"
        let_go(root, sandbox)
        assert ended(other, job)["stdout"] == "went\n"
        assert ended(one, after)["stdout"] == "after\n"


def test_a_name_is_taken_on_every_replica(root: Path) -> None:
    with two(root) as (one, other):
        sandbox = make(one, sandbox_id="shared")
        assert other.post("/sandboxes", json={"image": "host", "sandbox_id": sandbox}).status_code == 409


def test_what_one_replica_deletes_is_gone_on_every_replica(root: Path) -> None:
    with two(root) as (one, other):
        sandbox = make(one)
        assert other.get(f"/sandboxes/{sandbox}").json()["status"] == "ready"
        one.delete(f"/sandboxes/{sandbox}").raise_for_status()
        assert other.post(f"/sandboxes/{sandbox}/exec", json={"command": "true"}).status_code in (404, 410)
        assert other.get(f"/sandboxes/{sandbox}").json().get("status") != "ready"


def test_a_name_that_was_given_anew_means_the_new_sandbox_everywhere(root: Path) -> None:
    with two(root) as (one, other):
        make(one, sandbox_id="again")
        ended(other, start(other, "again", "touch old"))
        one.delete("/sandboxes/again").raise_for_status()
        make(one, sandbox_id="again")
        assert ended(other, start(other, "again", "ls"))["stdout"] == ""


def test_whose_key_it_is_decides_and_not_which_replica(root: Path) -> None:
    with replica(root) as first, first.client() as owner:
        sandbox = make(owner)
        with first.client(key=None) as nobody, first.client(key="forged") as forger:
            assert nobody.get(f"/sandboxes/{sandbox}").status_code == 401
            assert forger.get(f"/sandboxes/{sandbox}").status_code == 403
            assert nobody.get("/openapi.json").status_code == 401
            assert forger.get("/no/such/path").status_code == 403


def test_a_restarted_service_reaps_nothing_for_heartbeats_that_it_never_heard(root: Path) -> None:
    def quick() -> Services:
        return parts_of(standing_provider(root), heartbeat_s=0.05)

    with replica(root) as first, first.client() as client:
        sandbox = make(client)
        client.post(f"/sandboxes/{sandbox}/heartbeat").raise_for_status()
    with running(quick) as second, second.client() as client:
        other = make(client)
        client.post(f"/sandboxes/{other}/heartbeat").raise_for_status()
        while client.get(f"/sandboxes/{other}").status_code == 200:
            pass
        assert client.get(f"/sandboxes/{sandbox}").json()["status"] == "ready"
