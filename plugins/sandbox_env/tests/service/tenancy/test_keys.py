"""Keys from their making to their end, wherever they are kept."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from orchard_env.service.faults import KeyMissing, KeyRefused
from orchard_env.service.seams import Scope, Tenant
from orchard_env.service.state.memory import MemoryState
from orchard_env.service.tenancy.issuing import create_key, revoke_key, rotate_key, set_tenant
from orchard_env.service.tenancy.keyed import KeyedTenancy
from orchard_env.service.tenancy.secret import PATTERN

from orchard_core import ConfigError

from .conftest import Place


@asynccontextmanager
async def replica(place: Place) -> AsyncIterator[KeyedTenancy]:
    """A running replica of the service, as far as keys go."""
    keys = place.replica()
    await keys.start()
    try:
        yield KeyedTenancy(keys, MemoryState())
    finally:
        await keys.close()


async def refused(tenancy: KeyedTenancy, key: str, *, at_once: bool) -> str:
    """The words with which a key is refused: with the next request, or else within a moment."""
    async with asyncio.timeout(30):
        while True:
            try:
                await tenancy.identify(key)
            except KeyRefused as error:
                return error.message
            assert not at_once
            await asyncio.sleep(0.005)


async def known(tenancy: KeyedTenancy, key: str) -> Tenant:
    """Whose a key is, once the replica knows it."""
    async with asyncio.timeout(30):
        while True:
            try:
                return await tenancy.identify(key)
            except KeyRefused:
                await asyncio.sleep(0.005)


async def test_a_key_is_its_tenants_with_its_scopes_in_every_replica(place: Place) -> None:
    async with replica(place) as one, replica(place) as two:
        issued = await create_key(place.book, "alice", scopes=(Scope.READ,))
        for tenancy in (one, two):
            assert await known(tenancy, issued.text) == Tenant(
                name="alice", key_id=issued.record.id, scopes=frozenset({Scope.READ})
            )


async def test_a_key_has_256_random_bits_and_is_kept_only_as_a_hash(place: Place) -> None:
    texts = {(await create_key(place.book, "alice")).text for _ in range(5)}
    kept = (await place.book.read()).model_dump_json()
    assert len(texts) == 5
    for text in texts:
        assert text[17:] not in kept
        assert len(text[17:]) * 6 >= 256


async def test_a_revoked_key_is_refused_by_every_replica(place: Place) -> None:
    issued = await create_key(place.book, "alice")
    other = await create_key(place.book, "alice")
    async with replica(place) as one, replica(place) as two:
        assert (await known(one, issued.text)).name == "alice"
        await revoke_key(place.book, issued.record.id)
        for tenancy in (one, two):
            assert "was revoked" in await refused(tenancy, issued.text, at_once=place.at_once)
            assert (await tenancy.identify(other.text)).name == "alice"


async def test_an_expired_key_is_refused_and_one_that_will_expire_is_not(place: Place) -> None:
    past = await create_key(place.book, "alice", lasts_s=60.0, now=time.time() - 61.0)
    future = await create_key(place.book, "alice", lasts_s=3600.0)
    async with replica(place) as tenancy:
        assert "has expired" in await refused(tenancy, past.text, at_once=True)
        assert (await tenancy.identify(future.text)).name == "alice"


async def test_a_rotated_key_is_good_beside_the_new_one_until_the_overlap_ends(place: Place) -> None:
    old = await create_key(place.book, "alice", scopes=(Scope.READ, Scope.ADMIN), note="ci")
    new = await rotate_key(place.book, old.record.id, overlap_s=3600.0)
    async with replica(place) as tenancy:
        assert (await tenancy.identify(old.text)).name == (await tenancy.identify(new.text)).name == "alice"
        assert (await tenancy.identify(new.text)).is_admin
    again = await rotate_key(place.book, new.record.id, overlap_s=0.0)
    async with replica(place) as tenancy:
        assert "has expired" in await refused(tenancy, new.text, at_once=True)
        assert (await tenancy.identify(again.text)).name == "alice"
    with pytest.raises(ConfigError, match="replaced by"):
        await rotate_key(place.book, old.record.id, overlap_s=0.0)


async def test_what_a_rotation_and_a_revocation_do_at_once_leaves_the_key_revoked(place: Place) -> None:
    issued = await create_key(place.book, "alice")
    await asyncio.gather(
        rotate_key(place.book, issued.record.id, overlap_s=3600.0),
        revoke_key(place.book, issued.record.id),
        return_exceptions=True,
    )
    async with replica(place) as tenancy:
        assert "was revoked" in await refused(tenancy, issued.text, at_once=True)


async def test_keys_made_at_once_are_all_kept(place: Place) -> None:
    issued = await asyncio.gather(*(create_key(place.book, f"t{n}") for n in range(20)))
    async with replica(place) as tenancy:
        names = [(await tenancy.identify(one.text)).name for one in issued]
    assert names == [f"t{n}" for n in range(20)]


@pytest.mark.parametrize(
    "wrong",
    [
        "x",
        "ork_",
        "ork_000000000000_" + "A" * 43,
        "ork_ID_" + "A" * 43,
        "ork_ID_",
        "ORK_ID_SECRET",
        " KEY",
        "KEY ",
        "KEY\n",
        "KEYA",
        "é" * 60,
        "\ud800",
        "A" * 100_000,
    ],
)
async def test_what_is_not_the_key_is_refused_with_the_same_words(place: Place, wrong: str) -> None:
    issued = await create_key(place.book, "alice")
    parts = {"KEY": issued.text, "ID": issued.record.id, "SECRET": issued.text[17:]}
    for name, text in parts.items():
        wrong = wrong.replace(name, text)
    async with replica(place) as tenancy:
        with pytest.raises(KeyRefused) as one:
            await tenancy.identify(wrong)
    assert one.value.message == "the API key is not known here"
    assert one.value.status == 403


@pytest.mark.parametrize("missing", [None, ""])
async def test_no_key_is_told_apart_from_a_wrong_one(place: Place, missing: str | None) -> None:
    async with replica(place) as tenancy:
        with pytest.raises(KeyMissing) as refused_:
            await tenancy.identify(missing)
    assert refused_.value.status == 401


async def test_another_tenants_secret_does_not_open_a_key_with_ones_own_id(place: Place) -> None:
    alice, bob = [await create_key(place.book, name) for name in ("alice", "bob")]
    async with replica(place) as tenancy:
        assert await refused(tenancy, alice.text[:17] + bob.text[17:], at_once=True)


@pytest.mark.parametrize("name", ["", "Alice", "a b", "-a", "a/b", "a" * 64, "ä", "a\n"])
async def test_a_name_that_no_label_can_carry_is_refused(place: Place, name: str) -> None:
    with pytest.raises(ConfigError, match="cannot name a tenant"):
        await create_key(place.book, name)
    with pytest.raises(ConfigError, match="cannot name a tenant"):
        await set_tenant(place.book, name)


async def test_a_key_that_is_not_there_is_told_with_the_command_that_lists_them(place: Place) -> None:
    for work in (revoke_key(place.book, "0" * 12), rotate_key(place.book, "0" * 12, overlap_s=1.0)):
        with pytest.raises(ConfigError, match="there is no key 000000000000") as unknown:
            await work
        assert "orchard env keys list" in unknown.value.hint


async def test_a_tenant_keeps_what_is_not_set_anew(place: Place) -> None:
    await set_tenant(place.book, "alice", weight=2.0, limits={"sandboxes": 3, "cpu": 1.5})
    await set_tenant(place.book, "alice", limits={"sandboxes": 4})
    async with replica(place) as tenancy:
        record = tenancy.record("alice")
    assert record.weight == 2.0
    assert record.quota is not None
    assert (record.quota.sandboxes, record.quota.cpu, record.quota.memory_mb) == (4, 1.5, None)
    assert PATTERN.startswith("ork_")
