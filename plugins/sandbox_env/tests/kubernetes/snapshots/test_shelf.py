"""Saved archives in storage: whole, bounded, checked, and gone when they are discarded."""

from __future__ import annotations

import asyncio
import os
import tracemalloc
from collections.abc import AsyncIterator, Callable

import pytest
from orchard_env.kubernetes.snapshots.config import SnapshotConfig
from orchard_env.kubernetes.snapshots.record import SnapshotDamaged, SnapshotRecord, folder_of
from orchard_env.kubernetes.snapshots.shelf import SnapshotShelf
from orchard_env.kubernetes.snapshots.storage import Storage

from orchard_core import (
    ConfigError,
    ImageRef,
    SandboxSpec,
    SandboxUnavailable,
    SandboxUnsupported,
    Snapshot,
    SnapshotMissing,
)

from .conftest import path_of

SPEC = SandboxSpec(
    image=ImageRef(kind="oci", value="busybox:1.36"), user="1000", labels={"orchard.dev/tenant": "team"}
)
MIB = 1 << 20
Settings = Callable[..., SnapshotConfig]


async def parts(*given: bytes) -> AsyncIterator[bytes]:
    for one in given:
        yield one


async def whole(shelf: SnapshotShelf, snapshot: Snapshot, spec: SandboxSpec = SPEC) -> bytes:
    record = await shelf.find(snapshot, spec)
    return b"".join([piece async for piece in shelf.read(record)])


@pytest.fixture(params=["file", "s3"])
def config(request: pytest.FixtureRequest, settings: Settings) -> SnapshotConfig:
    """Pieces of 1 MiB."""
    return settings(request.param, chunk_mb=1)


@pytest.fixture
def shelf(config: SnapshotConfig) -> SnapshotShelf:
    return SnapshotShelf(config, "kubernetes")


async def objects(config: SnapshotConfig) -> list[str]:
    storage = Storage(config)
    return [path for folder in ("data", "snapshots") async for page in storage.paths(folder) for path in page]


async def test_what_was_saved_comes_back_in_any_process(config: SnapshotConfig, shelf: SnapshotShelf) -> None:
    data = [os.urandom(700_000), b"x" * 3_000_000, os.urandom(123)]
    saved = await shelf.save(parts(*data), SPEC)
    elsewhere = SnapshotShelf(config, "kubernetes")
    assert await whole(elsewhere, saved) == b"".join(data)
    # What can be compressed is.
    assert saved.size < 2_000_000


async def test_an_archive_of_nothing_is_one_too(shelf: SnapshotShelf) -> None:
    assert await whole(shelf, await shelf.save(parts(), SPEC)) == b""


async def test_two_saves_of_the_same_files_are_two_snapshots(shelf: SnapshotShelf) -> None:
    one, other = await asyncio.gather(shelf.save(parts(b"x"), SPEC), shelf.save(parts(b"x"), SPEC))
    assert one.id != other.id
    await shelf.discard(one)
    assert await whole(shelf, other) == b"x"


async def test_a_save_that_fails_leaves_nothing(config: SnapshotConfig, shelf: SnapshotShelf) -> None:
    async def torn() -> AsyncIterator[bytes]:
        yield os.urandom(2 * MIB)
        raise OSError("the sandbox is gone")

    with pytest.raises(OSError, match="the sandbox is gone"):
        await shelf.save(torn(), SPEC)
    assert await objects(config) == []


async def test_a_save_that_is_cancelled_leaves_nothing(config: SnapshotConfig, shelf: SnapshotShelf) -> None:
    begun = asyncio.Event()

    async def endless() -> AsyncIterator[bytes]:
        yield os.urandom(2 * MIB)
        begun.set()
        await asyncio.Event().wait()

    saving = asyncio.create_task(shelf.save(endless(), SPEC))
    await begun.wait()
    saving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await saving
    assert await objects(config) == []


async def _record(shelf: SnapshotShelf, saved: Snapshot) -> SnapshotRecord:
    return await shelf.find(saved, SPEC)


@pytest.mark.parametrize("how", ["changed", "cut", "swapped", "gone"])
async def test_pieces_that_are_not_what_was_saved_are_never_given(
    config: SnapshotConfig, shelf: SnapshotShelf, how: str
) -> None:
    data = os.urandom(3 * MIB)
    saved = await shelf.save(parts(data), SPEC)
    record = await _record(shelf, saved)
    storage = Storage(config)
    second, stored = record.path_of(1), await storage.get(record.path_of(1))
    if how == "gone":
        await storage.delete([second])
    else:
        other = await storage.get(record.path_of(2))
        spoiled = {"changed": stored[:-1] + bytes([stored[-1] ^ 1]), "cut": stored[:-1], "swapped": other}
        await storage.put(second, spoiled[how])
    given: list[bytes] = []

    async def read() -> None:
        async for piece in shelf.read(record):
            given.append(piece)  # noqa: PERF401 - what came before the error counts

    with pytest.raises(SnapshotDamaged, match="piece 1 of 3"):
        await read()
    assert b"".join(given) == data[:MIB]


async def test_a_piece_that_unpacks_to_more_than_was_saved_is_never_given(
    config: SnapshotConfig, shelf: SnapshotShelf
) -> None:
    saved = await shelf.save(parts(b"x" * 1000), SPEC)
    record = await _record(shelf, saved)
    lying = record.model_copy(update={"chunks": (record.chunks[0].model_copy(update={"size": 999}),)})
    with pytest.raises(SnapshotDamaged):
        [piece async for piece in shelf.read(lying)]


async def test_a_record_that_was_changed_is_refused(config: SnapshotConfig, shelf: SnapshotShelf) -> None:
    saved = await shelf.save(parts(b"x"), SPEC)
    storage, path = Storage(config), f"snapshots/{saved.id}"
    stored = await storage.get(path)
    await storage.put(path, stored.replace(b"busybox", b"evilbox"))
    with pytest.raises(SnapshotDamaged, match="not what was saved"):
        await shelf.find(saved, SPEC)


@pytest.mark.parametrize(
    "changes", [{"image": ImageRef(kind="oci", value="busybox:1.37")}, {"user": None}, {"user": "1001"}]
)
async def test_another_image_or_user_is_refused(settings: Settings, changes: dict[str, object]) -> None:
    shelf = SnapshotShelf(settings("file"), "kubernetes")
    saved = await shelf.save(parts(b"x"), SPEC)
    with pytest.raises(SandboxUnsupported, match="under another"):
        await shelf.find(saved, SPEC.model_copy(update=changes))


@pytest.mark.parametrize("name", ["no-such", "", "../../etc/passwd", f"snapshot-{'0' * 64}"])
async def test_what_is_not_there_is_missing(shelf: SnapshotShelf, name: str) -> None:
    unknown = Snapshot(id=name, provider="kubernetes", size=0)
    with pytest.raises(SnapshotMissing):
        await shelf.find(unknown, SPEC)
    await shelf.discard(unknown)


async def test_a_discarded_snapshot_takes_no_space(config: SnapshotConfig, shelf: SnapshotShelf) -> None:
    saved = await shelf.save(parts(os.urandom(3 * MIB)), SPEC)
    for _ in range(2):
        await shelf.discard(saved)
    assert await objects(config) == []


async def test_a_discard_waits_for_who_is_reading(config: SnapshotConfig, shelf: SnapshotShelf) -> None:
    data = os.urandom(3 * MIB)
    saved = await shelf.save(parts(data), SPEC)
    record = await _record(shelf, saved)
    shelf.begin_reading(record.place)
    discarding = asyncio.create_task(shelf.discard(saved))
    # Its name goes at once.
    while f"snapshots/{saved.id}" in await objects(config):
        await asyncio.sleep(0.01)
    assert b"".join([piece async for piece in shelf.read(record)]) == data
    shelf.end_reading(record.place)
    await discarding
    assert await objects(config) == []


async def test_a_listing_goes_on_where_one_ended(shelf: SnapshotShelf) -> None:
    made = {(await shelf.save(parts(b"%d" % number), SPEC)).id for number in range(5)}
    every = [one async for one, _ in shelf.listed()]
    assert every == sorted(made)
    assert [one async for one, _ in shelf.listed(after=every[2])] == every[3:]
    told = [record async for _, record in shelf.listed()].pop()
    assert (told.image, told.user, told.tenant) == ("oci:busybox:1.36", "1000", "team")


async def test_what_a_killed_saver_left_is_swept_and_nothing_else(
    config: SnapshotConfig, shelf: SnapshotShelf
) -> None:
    kept = await shelf.save(parts(b"kept"), SPEC)
    await Storage(config).put(f"{folder_of('a' * 32)}/000000-x", b"left")
    assert await shelf.sweep(older_s=3600) == 0
    assert await shelf.sweep(older_s=-3600) == 1
    assert await whole(shelf, kept) == b"kept"
    assert len(await objects(config)) == 2


async def test_snapshots_end_with_their_provider_unless_they_are_kept(settings: Settings) -> None:
    config = settings("file")
    one, other = (SnapshotShelf(config, "kubernetes") for _ in range(2))
    mine, others = await one.save(parts(b"mine"), SPEC), await other.save(parts(b"other"), SPEC)
    await one.discard_own()
    with pytest.raises(SnapshotMissing):
        await other.find(mine, SPEC)
    keeper = SnapshotShelf(config.model_copy(update={"keep": True}), "kubernetes")
    kept = await keeper.save(parts(b"kept"), SPEC)
    await keeper.discard_own()
    assert await whole(other, kept) == b"kept"
    assert await whole(other, others) == b"other"


async def test_memory_holds_a_few_pieces_however_large_the_archive(settings: Settings) -> None:
    shelf = SnapshotShelf(settings("file", chunk_mb=1), "kubernetes")
    block = os.urandom(64 << 10)

    async def large() -> AsyncIterator[bytes]:
        for _ in range(1024):
            yield block

    tracemalloc.start()
    try:
        saved = await shelf.save(large(), SPEC)
        size = 0
        async for piece in shelf.read(await _record(shelf, saved)):
            size += len(piece)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert size == 64 * MIB
    assert peak < 20 * MIB


async def test_a_storage_that_is_away_is_told_as_such(settings: Settings) -> None:
    lost = settings("s3").model_copy(update={"url": "s3://no-such-bucket/x"})
    shelf = SnapshotShelf(lost, "kubernetes")
    with pytest.raises(SandboxUnavailable, match="no-such-bucket"):
        await shelf.save(parts(b"x"), SPEC)
    with pytest.raises(SandboxUnavailable, match="no-such-bucket"):
        await shelf.find(Snapshot(id=f"snapshot-{'0' * 64}", provider="kubernetes", size=0), SPEC)


async def test_a_directory_that_cannot_be_made_is_told_before_anything_starts(settings: Settings) -> None:
    config = settings("file")
    (path_of(config) / "file").touch()
    with pytest.raises(ConfigError, match="cannot be opened"):
        SnapshotShelf(config.model_copy(update={"url": f"{config.url}/file/below"}), "kubernetes")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"url": "ftp://host/x"}, "cannot lie at"),
        ({"url": "s3://key:secret@bucket/x"}, "credentials"),
        ({"url": "s3://bucket", "options": {"secret_access_key": "x"}}, "is a secret"),
    ],
)
def test_secrets_come_from_the_environment_only(given: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        SnapshotConfig.model_validate(given)
    assert "secret@" not in str(caught.value)
