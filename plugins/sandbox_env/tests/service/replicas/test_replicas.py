"""Three replicas over one Redis, in processes of their own: keys, quotas and work are one team's, and the
death of a replica or of Redis loses nothing."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from orchard_env.service.seams import Scope
from orchard_env.service.state.redis.state import RedisState
from orchard_env.service.tenancy.books import Book, SharedBook
from orchard_env.service.tenancy.issuing import Issued, create_key, revoke_key, set_tenant

from ..redis_server import PASSWORD, RedisServer, running_redis
from ..running import GENEROUS_S
from ..standing_agents import end_all

pytestmark = pytest.mark.slow


class Replica:
    """One process of the service."""

    def __init__(self, folder: Path, redis: RedisServer, name: str) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        script = Path(__file__).parent / "replica_service.py"
        audit = folder / "audit.jsonl"
        self.process = subprocess.Popen(
            [sys.executable, str(script), str(folder / "root"), redis.url, name, str(audit)],
            env={**os.environ, "ORCHARD_ENV_REDIS_PASSWORD": PASSWORD},
            stdout=subprocess.PIPE,
            stderr=self.log.open("ab"),
            text=True,
        )

    def come_up(self) -> None:
        """Wait until it serves."""
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().strip()
        assert self.url, self.log.read_text()

    def client(self, key: str | None) -> httpx.Client:
        """A client with a key."""
        headers = {} if key is None else {"X-API-Key": key}
        return httpx.Client(base_url=self.url, timeout=GENEROUS_S, headers=headers)

    def kill(self) -> None:
        """kill -9."""
        self.process.kill()
        self.process.wait()


class Team:
    """A Redis and what runs over it."""

    def __init__(self, folder: Path, redis: RedisServer) -> None:
        self.folder = folder
        self.redis = redis
        self.replicas = [Replica(folder, redis, f"replica-{number}") for number in range(3)]
        for replica in self.replicas:
            replica.come_up()
        self.keys: list[Issued] = []

    def book(self, work: Callable[[Book], Any]) -> Any:
        """Do what an operator does."""

        async def do() -> Any:
            state = RedisState(self.redis.settings())
            try:
                return await work(SharedBook(state))
            finally:
                await state.close()

        return asyncio.run(do())

    def key(self, tenant: str, *scopes: Scope) -> Issued:
        """A new key, known to every replica."""
        given = scopes or (Scope.READ, Scope.USE, Scope.CREATE)
        issued: Issued = self.book(lambda book: create_key(book, tenant, scopes=given))
        self.keys.append(issued)
        for replica in self.replicas:
            with replica.client(issued.text) as client:
                until(lambda client=client: client.get("/resources").status_code == 200)  # type: ignore[misc]
        return issued


def until(look: Callable[[], bool], bound_s: float = GENEROUS_S) -> None:
    """Until it is so."""
    end = time.monotonic() + bound_s
    while not look():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.fixture
def team(tmp_path: Path) -> Iterator[Team]:
    """Three replicas, and nothing of them afterwards."""
    (tmp_path / "root").mkdir()
    with running_redis() as redis:
        made = Team(tmp_path, redis)
        try:
            yield made
        finally:
            for replica in made.replicas:
                replica.kill()
            end_all(tmp_path / "root")


def make(client: httpx.Client, **fields: Any) -> str:
    """A sandbox that is ready."""
    made = client.post("/sandboxes", json={"image": "host", **fields}).raise_for_status().json()["sandbox_id"]
    client.get(f"/sandboxes/{made}/wait").raise_for_status()
    return str(made)


def test_a_team_over_three_replicas_of_which_one_dies_and_redis_too(team: Team) -> None:
    """One case, because coming up is what costs: each step is what the last one left."""
    one, two, three = team.replicas
    alice, bob = team.key("alice"), team.key("bob")
    team.book(lambda book: set_tenant(book, "alice", limits={"sandboxes": 3}))

    # Quotas are exact over replicas.
    until(lambda: _quota(three, alice) == 3)
    clients = [replica.client(alice.text) for replica in (one, two, three)]
    with ThreadPoolExecutor(9) as pool:
        asked = list(pool.map(lambda n: clients[n % 3].post("/sandboxes", json={"image": "host"}), range(9)))
    made = [answer.json()["sandbox_id"] for answer in asked if answer.status_code == 200]
    refused = [answer for answer in asked if answer.status_code != 200]
    assert len(made) == 3
    assert {answer.status_code for answer in refused} == {429}
    assert all(answer.headers["Retry-After"] for answer in refused)
    for sandbox in made:
        clients[0].get(f"/sandboxes/{sandbox}/wait").raise_for_status()

    # Another tenant's sandbox is as unknown as one that never was.
    with two.client(bob.text) as stranger:
        for method, path in (
            ("GET", ""),
            ("DELETE", ""),
            ("POST", "/heartbeat"),
            ("GET", "/files?path=/etc/hostname"),
        ):
            theirs = stranger.request(method, f"/sandboxes/{made[0]}{path}")
            unknown = stranger.request(method, f"/sandboxes/sb-{'0' * 16}{path}")
            assert (theirs.status_code, unknown.status_code) == (404, 404)
            assert _words(theirs, made[0]) == _words(unknown, f"sb-{'0' * 16}")

    # A job that was begun through a replica that is killed is read from another.
    secret = "a-secret-in-the-output-of-a-command"
    job = (
        clients[0]
        .post(f"/sandboxes/{made[0]}/exec", json={"command": f"sleep 1; printf %s-%s {secret} done"})
        .json()["job_id"]
    )
    one.kill()
    told = clients[1].get(f"/jobs/{job}/wait", params={"timeout": 60}).raise_for_status().json()
    assert (told["status"], told["stdout"]) == ("succeeded", f"{secret}-done")

    # Redis dies: what stands goes on, limits go on, and /health says so.
    team.redis.kill()
    assert (
        clients[1]
        .post(f"/sandboxes/{made[1]}/exec", json={"command": "true", "wait": True})
        .json()["exit_code"]
        == 0
    )
    assert clients[2].post("/sandboxes", json={"image": "host"}).status_code == 429
    with two.client(None) as anybody:
        until(lambda: "Redis is away" in str(anybody.get("/health").json().get("degraded")))
        assert anybody.get("/health").json()["status"] == "ok"
    team.redis.start()
    with two.client(None) as anybody:
        until(lambda: "degraded" not in anybody.get("/health").json())

    # It had kept nothing, and knows the keys again; a revocation holds in every replica that lives.
    clients[1].delete(f"/sandboxes/{made[1]}").raise_for_status()
    until(lambda: team.redis.ask("HLEN", "{orchard}:table:access") == "3")
    team.book(lambda book: revoke_key(book, bob.record.id))
    for replica in (two, three):
        with replica.client(bob.text) as revoked:
            until(lambda revoked=revoked: revoked.get("/resources").status_code == 403)  # type: ignore[misc]

    # One of those that are left leads, and destroys what once sent heartbeats and sends no more.
    clients[1].post(f"/sandboxes/{made[0]}/heartbeat").raise_for_status()
    until(lambda: _gone(clients[2], made[0]) and _gone(clients[1], made[0]))
    assert clients[2].get(f"/sandboxes/{made[2]}").json()["status"] == "ready"

    # Who may administer sees every tenant, and drains a replica; nobody else does.
    ops = team.book(lambda book: create_key(book, "ops", scopes=(Scope.READ, Scope.ADMIN)))
    team.keys.append(ops)
    assert clients[1].get("/v2/admin/tenants").status_code == 403
    with two.client(ops.text) as admin:
        until(lambda: admin.get("/v2/admin/tenants").status_code == 200)
        until(lambda: _held(admin, "alice") == (1, 3))  # who ended what stood counts it out a moment later
        assert admin.post("/v2/admin/drain").json()["draining"]
        assert clients[1].post("/sandboxes", json={"image": "host"}).status_code == 503
        assert clients[1].get(f"/sandboxes/{made[2]}").json()["status"] == "ready"

    # Nobody's secret is in any log of all this.
    tokens = _tokens(clients[2], made[2])
    for client in clients:
        client.close()
    texts = {replica.name: replica.log.read_text() for replica in team.replicas}
    texts["audit"] = (team.folder / "audit.jsonl").read_text()
    for where, text in texts.items():
        for hidden in (PASSWORD, *(key.text[17:] for key in team.keys), *tokens):
            assert hidden not in text, f"a secret is in the log of {where}"
        assert f"{secret}-done" not in text
    audit = [json.loads(line) for line in texts["audit"].splitlines()]
    assert {line["tenant"] for line in audit} >= {"alice", ""}
    assert {"key.refused"} < {line["action"] for line in audit}


def _gone(client: httpx.Client, sandbox: str) -> bool:
    """Whoever had it in hands says for a while how it ended."""
    answer = client.get(f"/sandboxes/{sandbox}")
    return answer.status_code == 404 or answer.json()["status"] == "failed"


def _held(admin: httpx.Client, tenant: str) -> tuple[int, int]:
    """How many sandboxes a tenant has, and may have."""
    told = {one["tenant"]: one for one in admin.get("/v2/admin/tenants").json()["tenants"]}[tenant]
    return told["sandboxes"], told["quota"]["sandboxes"]


def _quota(replica: Replica, key: Issued) -> object:
    with replica.client(key.text) as client:
        return client.get("/v2/usage").json()["quota"].get("sandboxes")


def _words(answer: httpx.Response, sandbox: str) -> str:
    told = answer.json()
    told.pop("request_id")
    return json.dumps(told).replace(sandbox, "ID")


def _tokens(client: httpx.Client, sandbox: str) -> list[str]:
    """The agent's token, as direct mode gives it out."""
    answer = client.get(f"/v2/sandboxes/{sandbox}/endpoint")
    return [str(answer.json()["token"])] if answer.status_code == 200 else []
