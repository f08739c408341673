"""Files inside: streamed, whole or not at all, with any name Linux allows."""

from __future__ import annotations

import asyncio
import hashlib
import os
import socket
import stat
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from orchard_core.errors import (
    FileDenied,
    FileError,
    FileExists,
    FileMissing,
    IsADirectory,
    NotADirectory,
    SandboxError,
)
from orchard_core.sandbox.agent import AgentClient

ODD_NAMES = ["with space", "new\nline", "quo'te\"", "per%cent", "é", "bad-\udcff\udcfe", "-rf", "q?a=1&b#c"]


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


async def test_a_file_round_trips(agent: AgentClient, tmp_path: Path) -> None:
    path = str(tmp_path / "deep/er/file")
    await agent.write(path, bytes(range(256)), mode=0o640)
    assert await agent.read_bytes(path) == bytes(range(256))
    assert stat.S_IMODE(Path(path).stat().st_mode) == 0o640


async def test_a_large_file_streams_both_ways_while_health_answers(
    agent: AgentClient, tmp_path: Path
) -> None:
    block = os.urandom(1 << 20)
    path = str(tmp_path / "large")

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(64):
            yield block
            await agent.health()

    await agent.write(path, pieces())
    seen = hashlib.sha256()
    async for piece in agent.read(path):
        seen.update(piece)
    assert seen.digest() == hashlib.sha256(block * 64).digest()
    assert (await agent.metrics()).rss_bytes < 30e6


@pytest.mark.parametrize(
    ("offset", "length", "expected"),
    [
        (0, 3, b"012"),
        (7, None, b"789"),
        (8, 100, b"89"),
        (3, 0, b""),
        (10, None, b""),
        (99, 1, b""),
        (0, None, b"0123456789"),
    ],
)
async def test_ranges(
    agent: AgentClient, tmp_path: Path, offset: int, length: int | None, expected: bytes
) -> None:
    (tmp_path / "digits").write_bytes(b"0123456789")
    read = agent.read(str(tmp_path / "digits"), offset=offset, length=length)
    assert b"".join([piece async for piece in read]) == expected


async def test_an_empty_file_and_one_of_proc_are_read(agent: AgentClient, tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    assert await agent.read_bytes(str(tmp_path / "empty")) == b""
    assert b"processor" in await agent.read_bytes("/proc/cpuinfo")


async def test_a_cut_upload_leaves_the_old_file_and_no_litter(agent: AgentClient, tmp_path: Path) -> None:
    path = tmp_path / "kept"
    path.write_bytes(b"old")

    async def broken() -> AsyncIterator[bytes]:
        yield b"new" * 100_000
        raise RuntimeError("the source broke")

    with pytest.raises(RuntimeError, match="the source broke"):
        await agent.write(str(path), broken())
    await asyncio.sleep(0.1)
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["kept"]


async def test_readers_see_the_old_file_or_the_new(agent: AgentClient, tmp_path: Path) -> None:
    path = tmp_path / "swapped"
    sizes = {300_000, 700_000}
    path.write_bytes(b"a" * 300_000)
    for size in (700_000, 300_000, 700_000):
        writing = asyncio.create_task(agent.write(str(path), b"b" * size))
        while not writing.done():
            assert path.stat().st_size in sizes
            await asyncio.sleep(0)


async def test_an_existing_file_keeps_its_mode_and_links_are_followed(
    agent: AgentClient, tmp_path: Path
) -> None:
    (tmp_path / "real").write_text("x")
    (tmp_path / "real").chmod(0o755)
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "dangling").symlink_to("later")
    await agent.write(str(tmp_path / "link"), b"through")
    await agent.write(str(tmp_path / "dangling"), b"made")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"through"
    assert stat.S_IMODE((tmp_path / "real").stat().st_mode) == 0o755
    assert (tmp_path / "later").read_bytes() == b"made"


@pytest.mark.parametrize("name", ODD_NAMES)
async def test_odd_names_round_trip(agent: AgentClient, tmp_path: Path, name: str) -> None:
    path = f"{tmp_path}/{name}"
    await agent.write(path, b"odd")
    assert names(tmp_path) == [name]
    (entry,) = await agent.list(str(tmp_path))
    assert (entry.name, entry.path) == (name, path)
    assert await agent.read_bytes(entry.path) == b"odd"
    assert (await agent.stat(path)).name == name
    await agent.move(path, path + "2")
    await agent.remove(path + "2")
    assert names(tmp_path) == []


async def test_one_odd_entry_never_breaks_a_listing(agent: AgentClient, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("12345")
    (tmp_path / "dir").mkdir()
    (tmp_path / "broken").symlink_to("/nowhere/at/all")
    (tmp_path / "loop").symlink_to("loop")
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "sock"))
    entries = {entry.name: entry for entry in await agent.list(str(tmp_path))}
    assert [entries[name].kind for name in ("file", "dir", "broken", "pipe", "sock")] == [
        "file",
        "directory",
        "symlink",
        "other",
        "other",
    ]
    assert entries["broken"].link == "/nowhere/at/all"
    assert entries["broken"].broken
    assert entries["loop"].broken
    assert entries["file"].size == 5
    assert not entries["file"].broken


async def test_a_large_directory_lists(agent: AgentClient, tmp_path: Path) -> None:
    for n in range(3000):
        (tmp_path / f"{n:05}").touch()
    listed = [entry.name for entry in await agent.list(str(tmp_path))]
    assert listed == [f"{n:05}" for n in range(3000)]


async def test_errors_have_types(agent: AgentClient, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    missing, here, file = str(tmp_path / "missing"), str(tmp_path), str(tmp_path / "file")
    with pytest.raises(FileMissing):
        await agent.read_bytes(missing)
    with pytest.raises(FileMissing):
        await agent.stat(missing)
    with pytest.raises(FileMissing):
        await agent.list(missing)
    with pytest.raises(FileMissing):
        await agent.remove(missing, missing_ok=False)
    with pytest.raises(IsADirectory):
        await agent.read_bytes(here)
    with pytest.raises(IsADirectory):
        await agent.write(here, b"x")
    with pytest.raises(NotADirectory):
        await agent.list(file)
    with pytest.raises(NotADirectory):
        await agent.write(file + "/below", b"x")
    with pytest.raises(FileExists):
        await agent.move(file, here)
    with pytest.raises(FileExists):
        await agent.mkdir(here, parents=False)
    with pytest.raises(FileExists):
        await agent.remove(here, recursive=False)
    with pytest.raises(FileError, match="device"):
        await agent.read_bytes("/dev/zero")
    await agent.write(file, b"abc")
    with pytest.raises(FileError, match="more than 2 bytes"):
        await agent.read_bytes(file, limit=2)
    with pytest.raises((FileDenied, FileMissing)):
        await agent.write("/proc/nothing", b"x")
    with pytest.raises(SandboxError, match="absolute"):
        await agent.stat("relative")


async def test_directories_are_made_moved_and_removed(agent: AgentClient, tmp_path: Path) -> None:
    await agent.mkdir(str(tmp_path / "a/b"))
    await agent.mkdir(str(tmp_path / "a/b"))
    await agent.write(str(tmp_path / "a/b/file"), b"x")
    await agent.move(str(tmp_path / "a"), str(tmp_path / "c"))
    assert (tmp_path / "c/b/file").exists()
    (tmp_path / "c/outside").symlink_to(tmp_path / "kept")
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept/file").touch()
    await agent.remove(str(tmp_path / "c"))
    await agent.remove(str(tmp_path / "c"))
    assert (tmp_path / "kept/file").exists()


async def test_a_move_crosses_devices(agent: AgentClient, tmp_path: Path) -> None:
    shared = Path("/dev/shm")
    if not os.access(shared, os.W_OK) or shared.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("no second device to write to")
    source = tmp_path / "source"
    (source / "sub").mkdir(parents=True)
    (source / "sub/file").write_text("moved")
    (source / "sub/file").chmod(0o751)
    (source / "link").symlink_to("sub/file")
    target = shared / f"orchard-move-{os.getpid()}"
    await agent.move(str(source), str(target))
    try:
        assert (target / "link").read_text() == "moved"
        assert stat.S_IMODE((target / "sub/file").stat().st_mode) == 0o751
        assert not source.exists()
    finally:
        await agent.remove(str(target))


async def test_a_file_that_is_too_large_leaves_no_reader_behind(agent: AgentClient, tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(bytes(1 << 20))
    begun: list[Any] = []
    before = sys.get_asyncgen_hooks()
    sys.set_asyncgen_hooks(begun.append, before.finalizer)
    try:
        with pytest.raises(FileError, match="more than 10 bytes"):
            await agent.read_bytes(str(tmp_path / "large"), limit=10)
    finally:
        sys.set_asyncgen_hooks(*before)
    readers = [generator for generator in begun if generator.__name__ in {"read", "open"}]
    assert [reader.ag_frame for reader in readers] == [None, None]


async def test_half_of_a_surrogate_pair_names_no_file(agent: AgentClient) -> None:
    for call in (agent.stat, agent.read_bytes, agent.list, agent.remove):
        with pytest.raises(FileError, match="surrogate"):
            await call("/\ud800")
