"""What goes wrong beneath the service, told by type, in time, and to nobody else."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from orchard_env.service.seams import Tenant

from orchard_core import (
    Capabilities,
    ImagePullFailed,
    NetworkMode,
    NodeLost,
    OrchardError,
    QuotaExceeded,
    SandboxCreateFailed,
    SandboxOutOfMemory,
    SandboxSpec,
    SandboxUnavailable,
    ServiceOverloaded,
    Snapshot,
    SpecRefused,
    Unschedulable,
)
from orchard_core.testing import FakeProvider, FakeSandbox

from .running import KnownKeys, Running, parts_of, running
from .standing_agents import end_all, standing_provider

FAULTS: dict[str, tuple[OrchardError, int]] = {
    "pull": (ImagePullFailed("ErrImagePull: no such tag"), 422),
    "quota": (QuotaExceeded("exceeded quota: pods=10"), 429),
    "nowhere": (Unschedulable("0/3 nodes: insufficient cpu"), 503),
    "spec": (SpecRefused("runtimeClass not found"), 422),
    "oom": (SandboxOutOfMemory("OOMKilled at start", by="agent"), 410),
    "node": (NodeLost("node-7 does not answer"), 410),
    "full": (ServiceOverloaded("the API server is busy", retry_after_s=7), 503),
    "away": (SandboxUnavailable("the API server is away"), 503),
    "else": (SandboxCreateFailed("who knows"), 502),
}


class Failing(FakeProvider):
    """Fails as the image's name says, as a cluster would."""

    async def capabilities(self) -> Capabilities:
        """See SandboxProvider."""
        return Capabilities(images=frozenset({"oci"}), networks=frozenset({NetworkMode.NONE}))

    async def create(self, spec: SandboxSpec, *, restore: Snapshot | None = None) -> FakeSandbox:
        """See SandboxProvider."""
        if spec.image.value in FAULTS:
            raise FAULTS[spec.image.value][0]
        return await super().create(spec, restore=restore)


@pytest.fixture(scope="module")
def failing() -> Iterator[Running]:
    """A service over it."""
    with running(lambda: parts_of(Failing())) as served:
        yield served


@pytest.mark.parametrize("name", FAULTS)
def test_why_a_sandbox_did_not_come_up_is_a_typed_refusal_with_the_clusters_words(
    failing: Running, name: str
) -> None:
    fault, status = FAULTS[name]
    with failing.client() as client:
        made = client.post("/sandboxes", json={"image": name}).json()["sandbox_id"]
        told = client.get(f"/sandboxes/{made}/wait")
        assert (told.status_code, told.json()["error"]) == (status, type(fault).__name__)
        assert told.json()["detail"] == fault.message
        stands = client.get(f"/sandboxes/{made}").json()
        assert (stands["status"], stands["error"], stands["error_type"]) == (
            "failed",
            fault.message,
            type(fault).__name__,
        )
        ran = client.post(f"/sandboxes/{made}/exec", json={"command": "true", "wait": True})
        assert ran.status_code == status
        if status in (429, 503):
            assert int(told.headers["retry-after"]) >= 1
        assert client.delete(f"/sandboxes/{made}").status_code == 200


def test_a_retry_after_of_the_cluster_is_handed_on(failing: Running) -> None:
    with failing.client() as client:
        made = client.post("/sandboxes", json={"image": "full"}).json()["sandbox_id"]
        assert client.get(f"/sandboxes/{made}/wait").headers["retry-after"] == "7"


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    """Where agents stand."""
    yield tmp_path
    end_all(tmp_path)


@pytest.fixture
def client(root: Path) -> Iterator[httpx.Client]:
    """A client of a service over them."""
    with running(lambda: parts_of(standing_provider(root))) as served, served.client() as speaking:
        yield speaking


def ready(client: httpx.Client, **fields: Any) -> str:
    """A sandbox that answers."""
    made = str(client.post("/sandboxes", json={"image": "host", **fields}).json()["sandbox_id"])
    client.get(f"/sandboxes/{made}/wait").raise_for_status()
    return made


def test_a_stale_address_reaches_nobody_elses_sandbox(client: httpx.Client, root: Path) -> None:
    mine, theirs = ready(client), ready(client)
    (root / mine / "agent.sock").unlink()
    (root / mine / "agent.sock").symlink_to(root / theirs / "agent.sock")
    with running(lambda: parts_of(standing_provider(root))) as fresh, fresh.client() as misled:
        answer = misled.post(f"/sandboxes/{mine}/exec", json={"command": "touch stray", "wait": True})
    assert answer.status_code == 502
    assert answer.json()["error"] == "AgentRefused"
    assert not (root / theirs / "work" / "stray").exists()
    assert not (root / mine / "work" / "stray").exists()


def test_a_sandbox_whose_agent_was_killed_says_so_in_time_and_its_neighbour_works(
    client: httpx.Client, root: Path
) -> None:
    dead, alive = ready(client), ready(client)
    kill_agent(root, dead)
    began = time.monotonic()
    answer = client.post(f"/sandboxes/{dead}/exec", json={"command": "true", "wait": True})
    assert answer.status_code in (410, 503)
    assert answer.json()["message"]
    assert time.monotonic() - began < 30
    ran = client.post(f"/sandboxes/{alive}/exec", json={"command": "echo on", "wait": True})
    assert ran.json()["stdout"] == "on\n"


def kill_agent(root: Path, sandbox: str) -> None:
    """Kill one sandbox's agent."""
    os.killpg(int((root / sandbox / "pid").read_text()), signal.SIGKILL)


def test_losing_every_cache_and_every_name_loses_no_sandbox(client: httpx.Client, root: Path) -> None:
    sandbox = ready(client)
    (root / sandbox / "work" / "kept").touch()
    for _ in range(2):
        with running(lambda: parts_of(standing_provider(root))) as fresh, fresh.client() as other:
            job = other.post(f"/sandboxes/{sandbox}/exec", json={"command": "ls", "wait": True}).json()
            assert job["stdout"] == "kept\n"


def test_another_tenants_ids_open_nothing(root: Path) -> None:
    keys = KnownKeys(a=Tenant(name="a"), b=Tenant(name="b"))
    with running(lambda: parts_of(standing_provider(root), tenancy=keys)) as served:
        with served.client(key="a") as owner:
            sandbox = ready(owner, sandbox_id="of-a")
            job = owner.post(f"/sandboxes/{sandbox}/exec", json={"command": "echo s", "wait": True}).json()
        with served.client(key="b") as other:
            calls = [
                ("GET", f"/sandboxes/{sandbox}"),
                ("GET", f"/sandboxes/{sandbox}/wait"),
                ("POST", f"/sandboxes/{sandbox}/heartbeat"),
                ("POST", f"/sandboxes/{sandbox}/exec"),
                ("POST", f"/sandboxes/{sandbox}/apply_patch"),
                ("POST", f"/sandboxes/{sandbox}/files"),
                ("GET", f"/sandboxes/{sandbox}/files?path=x"),
                ("GET", f"/sandboxes/{sandbox}/files/list"),
                ("GET", f"/jobs/{job['job_id']}"),
                ("GET", f"/jobs/{job['job_id']}/wait"),
                ("DELETE", f"/jobs/{job['job_id']}"),
                ("DELETE", f"/sandboxes/{sandbox}"),
            ]
            for method, path in calls:
                assert other.request(method, path, json={"command": "true"}).status_code == 404, path
            taken = other.post("/sandboxes", json={"image": "host", "sandbox_id": sandbox})
            assert taken.status_code == 409
        with served.client(key="a") as owner:
            assert owner.get(f"/sandboxes/{sandbox}").json()["status"] == "ready"
