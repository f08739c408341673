"""Single files: whole or not at all, streamed, typed errors. Field fault 14."""

from __future__ import annotations

import asyncio
import hashlib
import os
import tracemalloc
from collections.abc import AsyncIterator

import pytest

from orchard_core.errors import FileError, FileMissing, IsADirectory, NotADirectory
from orchard_core.sandbox.contract import Sandbox
from orchard_core.testing.suites.sandbox.base import SandboxSuiteBase

BIG = 64 << 20


class FilesSuite(SandboxSuiteBase):
    """Reading and writing files needs no shell, no memory and no luck."""

    @pytest.mark.parametrize("data", [b"", b"text\n", bytes(range(256)), b"\r\n\0" * 1000])
    async def test_what_is_written_is_read(self, sandbox: Sandbox, place: str, data: bytes) -> None:
        """Files are bytes: no newline is changed, no character decoded."""
        await sandbox.write(f"{place}/file", data)
        assert await sandbox.read_bytes(f"{place}/file") == data
        assert (await sandbox.stat(f"{place}/file")).size == len(data)

    async def test_writing_makes_parents(self, sandbox: Sandbox, place: str) -> None:
        """Callers do not look first: make missing directories."""
        await sandbox.write(f"{place}/a/b/c/file", b"x")
        assert [entry.name for entry in await sandbox.list(f"{place}/a/b/c")] == ["file"]

    @pytest.mark.parametrize("mode", [0o644, 0o755, 0o600, 0o444, 0o777])
    async def test_mode_bits_are_those_asked_for(self, sandbox: Sandbox, place: str, mode: int) -> None:
        """A verifier script must be executable and a key private, whatever the umask: set the mode itself."""
        await sandbox.write(f"{place}/file", b"x", mode=mode)
        assert (await sandbox.stat(f"{place}/file")).mode == mode

    @pytest.mark.parametrize(
        ("offset", "length", "expected"),
        [
            (0, 3, b"012"),
            (4, None, b"456789"),
            (4, 2, b"45"),
            (8, 100, b"89"),
            (10, None, b""),
            (99, 5, b""),
            (3, 0, b""),
        ],
    )
    async def test_a_range_is_exact(
        self, sandbox: Sandbox, place: str, offset: int, length: int | None, expected: bytes
    ) -> None:
        """A reader that resumes asks for the rest only: honour `offset` and `length`, past the end too."""
        await sandbox.write(f"{place}/digits", b"0123456789")
        pieces = [piece async for piece in sandbox.read(f"{place}/digits", offset=offset, length=length)]
        assert b"".join(pieces) == expected

    async def test_a_failed_write_leaves_the_old_file(self, sandbox: Sandbox, place: str) -> None:
        """Half a config file is worse than the old one: write beside it, then rename; leave no scraps."""

        async def broken() -> AsyncIterator[bytes]:
            yield b"new" * 100_000
            raise RuntimeError("the source broke")

        await sandbox.write(f"{place}/file", b"old")
        with pytest.raises(RuntimeError, match="the source broke"):
            await sandbox.write(f"{place}/file", broken())
        assert await sandbox.read_bytes(f"{place}/file") == b"old"

    async def test_a_failed_write_leaves_no_new_file(self, sandbox: Sandbox, place: str) -> None:
        """A file that was never whole must not exist."""

        async def broken() -> AsyncIterator[bytes]:
            yield b"half"
            raise RuntimeError("the source broke")

        with pytest.raises(RuntimeError, match="the source broke"):
            await sandbox.write(f"{place}/never", broken())
        with pytest.raises(FileMissing):
            await sandbox.stat(f"{place}/never")

    async def test_overwriting_replaces_the_whole_content(self, sandbox: Sandbox, place: str) -> None:
        """A shorter text must not keep the longer one's end."""
        await sandbox.write(f"{place}/file", b"a long content")
        await sandbox.write(f"{place}/file", b"short")
        assert await sandbox.read_bytes(f"{place}/file") == b"short"

    async def test_a_big_file_moves_in_pieces_while_the_agent_answers(
        self, sandbox: Sandbox, place: str
    ) -> None:
        """A dataset must not stop health checks nor sit in memory: stream both ways, bounded."""
        block = os.urandom(1 << 20)
        wanted = hashlib.sha256(block * (BIG >> 20)).digest()

        async def blocks() -> AsyncIterator[bytes]:
            for _ in range(BIG >> 20):
                yield block

        tracemalloc.start()
        try:
            writing = asyncio.create_task(sandbox.write(f"{place}/big", blocks()))
            assert await _alive_until(sandbox, writing)
            reading = asyncio.create_task(_digest(sandbox, f"{place}/big"))
            assert await _alive_until(sandbox, reading)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert await reading == wanted
        assert peak < BIG // 2, f"moving {BIG >> 20} MiB took {peak >> 20} MiB of memory"

    async def test_reading_whole_has_a_bound(self, sandbox: Sandbox, place: str) -> None:
        """A hostile file must not fill the driver's memory: raise FileError above `limit`."""
        await sandbox.write(f"{place}/file", b"12345")
        assert await sandbox.read_bytes(f"{place}/file", limit=5) == b"12345"
        with pytest.raises(FileError):
            await sandbox.read_bytes(f"{place}/file", limit=4)

    async def test_a_missing_file_is_a_typed_error(self, sandbox: Sandbox, place: str) -> None:
        """Callers branch on absence: raise FileMissing from read, stat and list alike."""
        with pytest.raises(FileMissing):
            await sandbox.read_bytes(f"{place}/none")
        with pytest.raises(FileMissing):
            await sandbox.stat(f"{place}/none")
        with pytest.raises(FileMissing):
            await sandbox.list(f"{place}/none")

    async def test_a_directory_in_a_files_place_is_a_typed_error(self, sandbox: Sandbox, place: str) -> None:
        """Reading or writing a directory as a file raises IsADirectory, and leaves it."""
        await sandbox.write(f"{place}/directory/file", b"x")
        with pytest.raises(IsADirectory):
            await sandbox.read_bytes(f"{place}/directory")
        with pytest.raises(IsADirectory):
            await sandbox.write(f"{place}/directory", b"y")
        assert await sandbox.read_bytes(f"{place}/directory/file") == b"x"

    async def test_a_file_in_a_directorys_place_is_a_typed_error(self, sandbox: Sandbox, place: str) -> None:
        """Listing a file, or making a directory over one, raises NotADirectory."""
        await sandbox.write(f"{place}/file", b"x")
        with pytest.raises(NotADirectory):
            await sandbox.list(f"{place}/file")
        with pytest.raises(NotADirectory):
            await sandbox.mkdir(f"{place}/file")

    async def test_making_and_removing_may_be_repeated(self, sandbox: Sandbox, place: str) -> None:
        """A retry after a lost answer must not fail: mkdir and remove are fine when it is done already."""
        for _ in range(2):
            await sandbox.mkdir(f"{place}/one/two")
        assert (await sandbox.stat(f"{place}/one/two")).kind == "directory"
        await sandbox.write(f"{place}/one/two/file", b"x")
        for _ in range(2):
            await sandbox.remove(f"{place}/one")
        with pytest.raises(FileMissing):
            await sandbox.stat(f"{place}/one")
        await sandbox.remove(f"{place}/never/was/there")


async def _alive_until(sandbox: Sandbox, moving: asyncio.Task[object]) -> bool:
    """Ask for health while something moves; False as soon as one question fails."""
    healthy = True
    while not moving.done() and healthy:
        async with asyncio.timeout(10):
            healthy = await sandbox.alive()
        await asyncio.sleep(0.01)
    await moving
    return healthy


async def _digest(sandbox: Sandbox, path: str) -> bytes:
    seen = hashlib.sha256()
    async for piece in sandbox.read(path):
        seen.update(piece)
    return seen.digest()
