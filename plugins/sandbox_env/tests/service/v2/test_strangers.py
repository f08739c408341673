"""Another tenant's sandboxes, snapshots and commands, and a key's scopes: nothing of them is to be had."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator

import aiohttp
import pytest
from orchard_env.service.seams import Scope, Tenant

from orchard_core import load_provider

from ..running import GENEROUS_S, KnownKeys, Running, parts_of, running


@pytest.fixture(scope="module")
def shared(isolation: None) -> Iterator[Running]:
    """A service of two tenants, one of whom also has a key that may only look."""
    keys = KnownKeys(
        ours=Tenant(name="ours"),
        theirs=Tenant(name="theirs"),
        looking=Tenant(name="ours", scopes=frozenset({Scope.READ})),
    )
    with running(lambda: parts_of(load_provider("local"), tenancy=keys), key="ours") as served:
        yield served


@pytest.fixture(scope="module")
def ours(shared: Running) -> str:
    """A sandbox of the first tenant, with a command in it."""
    with shared.client() as client:
        made = client.post("/v2/sandboxes", params={"wait": GENEROUS_S}, json={}).json()["id"]
        client.post(f"/v2/sandboxes/{made}/execs", json={"id": "known", "command": "echo secret"})
    return f"/v2/sandboxes/{made}"


CALLS = (
    ("GET", "", None),
    ("DELETE", "", None),
    ("POST", "/heartbeat", None),
    ("POST", "/reset", None),
    ("POST", "/extend", {"ttl_s": 10}),
    ("POST", "/exec", {"command": "true"}),
    ("POST", "/exec/stream", {"command": "true"}),
    ("POST", "/execs", {"command": "true"}),
    ("GET", "/execs", None),
    ("GET", "/execs/known", None),
    ("GET", "/execs/known/logs", None),
    ("GET", "/execs/known/events", None),
    ("POST", "/execs/known/signal", {"signal": 9}),
    ("POST", "/execs/known/stdin", None),
    ("GET", "/files?path=/etc/passwd", None),
    ("PUT", "/files?path=/workspace/x", None),
    ("DELETE", "/files?path=/workspace/x", None),
    ("GET", "/files/list?path=/", None),
    ("GET", "/files/stat?path=/", None),
    ("POST", "/files/mkdir?path=/workspace/x", None),
    ("POST", "/files/move?from=/a&to=/b", None),
    ("GET", "/tree?path=/workspace", None),
    ("PUT", "/tree?path=/workspace", None),
    ("POST", "/snapshot", None),
    ("POST", "/fork", {"count": 1}),
    ("GET", "/endpoint", None),
    ("DELETE", "/endpoint", {"url": None, "sandbox_id": "x", "token": "t"}),
    ("GET", "/metrics", None),
    ("GET", "/agent/v1/health", None),
    ("POST", "/agent/v1/exec", None),
    ("GET", "/agent/v1/files?path=/etc/passwd", None),
    ("POST", "/agent/v1/kill", None),
)


@pytest.mark.parametrize(("method", "path", "body"), CALLS, ids=[f"{m} {p or '/'}" for m, p, _ in CALLS])
def test_another_tenants_sandbox_is_as_if_it_were_not_there(
    shared: Running, ours: str, method: str, path: str, body: object
) -> None:
    with shared.client(key="theirs") as stranger:
        answers = [
            stranger.request(method, f"{at}{path}", json=body) for at in (ours, "/v2/sandboxes/never-was")
        ]
    for answer in answers:
        assert (answer.status_code, answer.json()["error"]) == (404, "SandboxUnknown"), answer.text
        assert "secret" not in answer.text


@pytest.mark.parametrize(("method", "path", "body"), CALLS, ids=[f"{m} {p or '/'}" for m, p, _ in CALLS])
def test_no_call_goes_without_a_key(shared: Running, ours: str, method: str, path: str, body: object) -> None:
    with shared.client(key=None) as nobody, shared.client(key="wrong") as wrong:
        assert nobody.request(method, f"{ours}{path}", json=body).status_code == 401
        assert wrong.request(method, f"{ours}{path}", json=body).status_code == 403


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [call for call in CALLS if call[0] != "GET" or call[1] == "/endpoint"],
    ids=[f"{m} {p or '/'}" for m, p, _ in CALLS if m != "GET" or p == "/endpoint"],
)
def test_a_key_that_may_look_may_not_touch(
    shared: Running, ours: str, method: str, path: str, body: object
) -> None:
    with shared.client(key="looking") as client:
        answer = client.request(method, f"{ours}{path}", json=body)
        assert (answer.status_code, answer.json()["error"]) == (403, "ScopeMissing")
        assert client.get(ours).json()["status"] == "ready"


@pytest.mark.parametrize("path", ["/exec/stream", "/ports/80", "/tunnel", "/agent/v1/tunnel"])
async def test_no_socket_leads_to_another_tenants_sandbox(shared: Running, ours: str, path: str) -> None:
    async with (
        asyncio.timeout(GENEROUS_S),
        aiohttp.ClientSession(shared.url, headers={"X-API-Key": "theirs"}) as session,
        session.ws_connect(ours + path) as socket,
    ):
        said = json.loads((await socket.receive()).data)
        told = json.loads(said["body"]) if "body" in said else said
        assert told["error"] == "SandboxUnknown"
        assert (await socket.receive()).type is aiohttp.WSMsgType.CLOSE


def test_lists_and_snapshots_are_each_tenants_own(shared: Running, ours: str) -> None:
    with shared.client() as owner, shared.client(key="theirs") as stranger:
        assert owner.get("/v2/sandboxes").json()["sandboxes"]
        assert stranger.get("/v2/sandboxes").json()["sandboxes"] == []
        saved = owner.post(f"{ours}/snapshot").json()
        borrowed = stranger.post("/v2/sandboxes", json={"restore": saved})
        assert (borrowed.status_code, borrowed.json()["error"]) == (404, "SnapshotMissing")
        assert stranger.delete(f"/v2/snapshots/{saved['id']}").status_code == 404
        assert owner.delete(f"/v2/snapshots/{saved['id']}").status_code == 204


@pytest.mark.parametrize(
    "spec",
    [
        {"mounts": [{"source": "/etc", "target": "/mnt"}]},
        {"network": {"mode": "host"}},
        {"image": {"kind": "rootfs", "value": "/"}},
        {"image": {"kind": "build", "value": "/root"}},
    ],
)
def test_pieces_of_the_services_machine_are_for_administrators(
    shared: Running, spec: dict[str, object]
) -> None:
    with shared.client() as client:
        answer = client.post("/v2/sandboxes", json={"spec": spec})
        assert (answer.status_code, answer.json()["error"]) == (403, "ScopeMissing"), answer.text


def test_an_idempotency_key_of_another_tenant_gives_nothing_away(shared: Running) -> None:
    key = {"Idempotency-Key": "same"}
    with shared.client() as owner, shared.client(key="theirs") as stranger:
        first = owner.post("/v2/sandboxes", json={}, headers=key).json()["id"]
        second = stranger.post("/v2/sandboxes", json={}, headers=key).json()["id"]
        assert first != second
        owner.delete(f"/v2/sandboxes/{first}")
        stranger.delete(f"/v2/sandboxes/{second}")


def test_a_name_that_another_tenant_has_is_taken_and_stays_theirs(shared: Running, ours: str) -> None:
    name = ours.rpartition("/")[2]
    with shared.client(key="theirs") as stranger:
        answer = stranger.post("/v2/sandboxes", json={"spec": {"name": name}})
        assert (answer.status_code, answer.json()["error"]) == (409, "SandboxExists")
        assert stranger.get(ours).status_code == 404
    with shared.client() as owner:
        assert owner.get(ours).json()["status"] == "ready"
