"""Snapshots have a quota of their own: so many, and so much of the disk."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace

import httpx
import pytest
from orchard_env.service.seams import Tenant
from orchard_env.service.services import Services
from orchard_env.service.state.memory import MemoryState
from orchard_env.service.tenancy.quota import Quota
from orchard_env.service.tenancy.saved import SavedFiles

from orchard_core import QuotaExceeded, Snapshot, load_provider

from ..running import GENEROUS_S, KnownKeys, Running, parts_of, running

MIB = 1 << 20
QUOTAS = {"ours": Quota(snapshots=2, snapshots_mb=8), "theirs": Quota(snapshots=0)}


def limits(tenant: str) -> tuple[int, ...]:
    return QUOTAS.get(tenant, Quota()).snapshot_limits


@pytest.fixture(scope="module")
def bounded(isolation: None) -> Iterator[Running]:
    """A service whose tenants may have few snapshots."""

    def parts() -> Services:
        keys = KnownKeys(ours=Tenant(name="ours"), theirs=Tenant(name="theirs"))
        made = parts_of(load_provider("local"), tenancy=keys)
        return replace(made, saved=SavedFiles(MemoryState().ledgers, limits))

    with running(parts, key="ours") as service:
        yield service


def made(client: httpx.Client) -> str:
    answer = client.post("/v2/sandboxes", params={"wait": GENEROUS_S}, json={}).raise_for_status()
    return f"/v2/sandboxes/{answer.json()['id']}"


def test_one_too_many_is_refused_until_another_is_discarded(bounded: Running) -> None:
    with bounded.client() as client, bounded.client(key="theirs") as other:
        at, elsewhere = made(client), made(other)
        saved = [client.post(f"{at}/snapshot").raise_for_status().json() for _ in range(2)]
        refused = client.post(f"{at}/snapshot")
        assert (refused.status_code, refused.json()["error"]) == (429, "QuotaExceeded")
        assert "has 2 of 2 snapshots" in refused.json()["message"]
        listed = client.get("/v2/snapshots").json()["snapshots"]
        assert sorted(listed, key=str) == sorted(saved, key=str)
        assert client.get("/v2/usage").json()["snapshots"] == 2
        assert client.post(f"{at}/fork", json={"count": 1}).status_code == 201, "it is none that stands"
        assert client.delete(f"/v2/snapshots/{saved[0]['id']}").status_code == 204
        again = client.post(f"{at}/snapshot").raise_for_status().json()
        for left in (saved[1], again):
            client.delete(f"/v2/snapshots/{left['id']}")
        assert client.get("/v2/snapshots").json()["snapshots"] == []
        assert other.post(f"{elsewhere}/snapshot").status_code == 429


def test_one_that_is_too_large_is_told_so_and_nothing_is_left_of_it(bounded: Running) -> None:
    with bounded.client() as client:
        at = made(client)
        client.put(f"{at}/files", params={"path": "/workspace/f"}, content=bytes(12 * MIB))
        for _ in range(2):
            refused = client.post(f"{at}/snapshot")
            assert (refused.status_code, refused.json()["error"]) == (429, "QuotaExceeded")
            assert "of 8 MiB of snapshots" in refused.json()["message"]
        assert client.get("/v2/snapshots").json()["snapshots"] == []
        client.put(f"{at}/files", params={"path": "/workspace/f"}, content=b"small")
        small = client.post(f"{at}/snapshot").raise_for_status().json()
        client.delete(f"/v2/snapshots/{small['id']}")


async def test_of_many_at_once_no_more_are_kept_than_allowed_and_the_rest_discarded() -> None:
    standing: set[str] = set()
    saved = SavedFiles(MemoryState().ledgers, lambda tenant: (3, 10 * MIB))

    async def save(name: str) -> Snapshot:
        standing.add(name)
        await asyncio.sleep(0)
        return Snapshot(id=name, provider="p", size=4 * MIB)

    async def discard(snapshot: Snapshot) -> None:
        standing.discard(snapshot.id)

    asked = await asyncio.gather(
        *(saved.kept("t", lambda n=n: save(f"s{n}"), discard) for n in range(20)),  # type: ignore[misc]
        return_exceptions=True,
    )
    assert all(isinstance(one, Snapshot | QuotaExceeded) for one in asked)
    kept = {one.id for one in asked if isinstance(one, Snapshot)}
    assert kept == standing == {one.id for one in await saved.of("t")}
    assert 1 <= len(kept) <= 2


async def test_what_could_not_be_saved_does_not_count() -> None:
    saved = SavedFiles(MemoryState().ledgers, lambda tenant: (1, -1))

    async def fails() -> Snapshot:
        raise OSError("no room")

    async def discard(snapshot: Snapshot) -> None:
        raise AssertionError("nothing was saved")

    for _ in range(3):
        with pytest.raises(OSError, match="no room"):
            await saved.kept("t", fails, discard)
    assert await saved.of("t") == []
