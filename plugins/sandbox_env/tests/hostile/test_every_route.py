"""On every call of the service, another tenant's ids are as if they were not there."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from dataclasses import dataclass

import aiohttp
import httpx
import pytest
from orchard_env.service.admission.fair import FairAdmission
from orchard_env.service.services import Services
from orchard_env.service.state.memory import MemoryState
from orchard_env.service.tenancy.books import FileBook
from orchard_env.service.tenancy.issuing import create_key
from orchard_env.service.tenancy.key_file import FileKeys
from orchard_env.service.tenancy.keyed import KeyedTenancy

from orchard_core import load_provider

from ..service.running import GENEROUS_S, Running, parts_of, running
from .conftest import made
from .routes import Door, Doors

MARK = "MARK-that-nobody-else-may-see"
NEVER = "sb-0123456789abcdef"
QUERY = {"path": "/workspace/f", "from": "/workspace/f", "to": "/workspace/g", "timeout": "0", "wait": "0"}
BODIES: tuple[object, ...] = (
    None,
    {"command": "cat /workspace/f"},
    {"command": "cat /workspace/f", "id": "known"},
    {"command": "cat /workspace/f", "exec_id": "job", "wait": True},
    {"path": "/workspace/f", "content": "x"},
    {"patch": "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-x\n+y\n"},
    {"signal": 9},
    {"ttl_s": 10},
    {"count": 1},
    {"url": None, "sandbox_id": "x", "token": "t"},
)
"""One of them is understood by each call, or the test asks for another."""
ADMIN = {"/v2/admin/tenants", "/v2/admin/replica", "/v2/admin/drain"}
_OWN_ID = re.compile(r"(?<=request_id)\W+\w+")
INSIDE = ("v1/health", "v1/exec/known", "v1/exec", "v1/files", "v1/tree", "v1/kill")
RAW = ("v1/tunnel", "v1/forward/80", "v1/exec/known/pty")
"""Calls of the agent, and those that travel in a WebSocket."""


@dataclass(frozen=True, kw_only=True)
class Attacked:
    """A service, its calls, and what a tenant has in it."""

    service: Running
    """As the attacker calls it."""
    owner: Running
    """As its owner calls it."""
    doors: frozenset[Door]
    theirs: str
    """A sandbox with a file, a command and a job that show the mark."""
    snapshot: str


@pytest.fixture(scope="module")
def attacked(isolation: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attacked]:
    path = tmp_path_factory.mktemp("keys") / "keys.json"
    ours, theirs_key = (asyncio.run(create_key(FileBook(path), name)).text for name in ("ours", "theirs"))
    doors = Doors()

    def parts() -> Services:
        state = MemoryState()
        tenancy = KeyedTenancy(FileKeys(path), state)
        return parts_of(load_provider("local"), tenancy=tenancy, admission=FairAdmission(tenancy, state))

    with running(parts, key=ours, parts=(doors,)) as service:
        theirs = made(service.as_caller(theirs_key), labels={"mark": MARK})
        with service.client(key=theirs_key) as owner:
            at = f"/v2/sandboxes/{theirs}"
            owner.put(f"{at}/files?path=/workspace/f", content=MARK.encode()).raise_for_status()
            owner.post(f"{at}/execs", json={"id": "known", "command": f"echo {MARK}"}).raise_for_status()
            job = {"command": f"echo {MARK}", "exec_id": "job", "wait": True}
            owner.post(f"/sandboxes/{theirs}/exec", json=job).raise_for_status()
            saved = owner.post(f"{at}/snapshot").raise_for_status().json()["id"]
        owned = service.as_caller(theirs_key)
        yield Attacked(
            service=service, owner=owned, doors=frozenset(doors.all), theirs=theirs, snapshot=saved
        )


def filled(door: Door, sandbox: str, snapshot: str) -> list[str]:
    """Its paths that lead to one sandbox. One that is not known here fails: say what it stands for."""
    given = {
        "sandbox_id": sandbox, "job_id": f"{sandbox}.job", "snapshot_id": snapshot,
        "exec_id": "known", "port": "80",
    }  # fmt: skip
    calls = RAW if door.method == "WS" else INSIDE
    inside = calls if "{path:path}" in door.path else ("",)
    return [door.at(**given, path=path) for path in inside]


def said(answer: httpx.Response, *ids: str) -> tuple[int, str]:
    """What it tells, but for the id that it was asked for and its own."""
    text = answer.text
    for known in (*ids, answer.headers.get("x-request-id", "none")):
        text = text.replace(known, "ID")
    return answer.status_code, text


def test_the_table_is_whole(attacked: Attacked) -> None:
    with attacked.service.client() as client:
        paths = client.get("/openapi.json").raise_for_status().json()["paths"]
    told = {(path, method.upper()) for path, calls in paths.items() for method in calls}
    found = {(door.path.replace(":path", ""), door.method) for door in attacked.doors}
    assert told <= found
    assert sum(door.method == "WS" for door in attacked.doors) >= 5
    assert {door.path for door in attacked.doors} >= ADMIN


def test_what_is_an_operators_is_nobody_elses(attacked: Attacked) -> None:
    with attacked.service.client() as client, httpx.Client(base_url=attacked.service.url) as keyless:
        for door in attacked.doors:
            if door.path in ADMIN:
                refused = client.request(door.method, door.path)
                assert (refused.status_code, refused.json()["error"]) == (403, "ScopeMissing")
                assert MARK not in refused.text
                assert attacked.theirs not in refused.text
                assert keyless.request(door.method, door.path).status_code == 401
        made_after = client.post("/v2/sandboxes", params={"wait": GENEROUS_S}, json={})
        assert made_after.json()["status"] == "ready", "nobody has drained it"
        client.delete(f"/v2/sandboxes/{made_after.json()['id']}")


def test_anothers_ids_are_as_if_they_were_not_there(attacked: Attacked) -> None:
    known, never = (attacked.theirs, attacked.snapshot), (NEVER, "A" * len(attacked.snapshot))
    with attacked.service.client() as client:
        for door in sorted(attacked.doors):
            if "{" not in door.path or door.method == "WS":
                continue
            understood = False
            for there, nowhere in zip(filled(door, *known), filled(door, *never), strict=True):
                for body in BODIES if door.method != "GET" else (None,):
                    one, other = (
                        client.request(door.method, path, params=QUERY, json=body)
                        for path in (there, nowhere)
                    )
                    shown = f"{door.method} {there} {body}: {one.status_code} {one.text}"
                    assert 400 <= one.status_code < 500, shown
                    assert MARK not in one.text, shown
                    if door.method != "HEAD":
                        assert one.json()["message"], shown
                    assert said(one, *known) == said(other, *never), shown
                    understood |= one.status_code == 404
            assert understood or door.open, f"say in BODIES or QUERY what {door} understands"
        for door in attacked.doors:
            if door.method == "GET" and "{" not in door.path:
                listed = client.get(door.path, params={"tenant": "theirs", "sandbox_id": attacked.theirs})
                assert listed.status_code < 500
                assert MARK not in listed.text
                assert attacked.theirs not in listed.text
    _unharmed(attacked)


def _unharmed(attacked: Attacked) -> None:
    at = f"/v2/sandboxes/{attacked.theirs}"
    with attacked.owner.client() as owner:
        assert owner.get(at).json()["status"] == "ready"
        assert owner.get(f"{at}/files", params={"path": "/workspace/f"}).text == MARK
        runs = owner.get(f"{at}/execs").json()["execs"]
        assert {run["id"] for run in runs} == {"known", "job"}


async def test_no_socket_leads_to_anothers(attacked: Attacked) -> None:
    sockets = sorted(door for door in attacked.doors if door.method == "WS")
    async with (
        asyncio.timeout(GENEROUS_S),
        aiohttp.ClientSession(
            attacked.service.url, headers={"X-API-Key": str(attacked.service.key)}
        ) as session,
    ):
        for door in sockets:
            pairs = zip(filled(door, attacked.theirs, "-"), filled(door, NEVER, "-"), strict=True)
            for there, nowhere in pairs:
                one, other = await _heard(session, there), await _heard(session, nowhere)
                assert "there is no sandbox" in one, f"{there}: {one}"
                assert MARK not in one
                assert one.replace(attacked.theirs, "ID") == other.replace(NEVER, "ID")
    _unharmed(attacked)


async def _heard(session: aiohttp.ClientSession, path: str) -> str:
    """All that is told until it closes, but for ids of requests."""
    try:
        async with session.ws_connect(path) as socket:
            await socket.send_json(
                {"type": "init", "command": "cat /workspace/f", "cmd": ["cat", "/workspace/f"]}
            )
            told = [str(message.data) async for message in socket]
            told.append(str(socket.close_code))
    except aiohttp.WSServerHandshakeError as refused:
        return str(refused.status)
    return _OWN_ID.sub("ID", "\n".join(told))
