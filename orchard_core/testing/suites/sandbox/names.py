"""Odd names, links and special files in listings. Field fault 15."""

from __future__ import annotations

import asyncio
import os

import pytest

from orchard_core.errors import FileError, FileMissing
from orchard_core.sandbox.contract import Sandbox
from orchard_core.testing.suites.sandbox.base import PATIENCE_S, SandboxSuiteBase, ShellSuiteBase

ODD_NAMES = {
    "blank": "two words",
    "quotes": 'it\'s "quoted"',
    "newline": "two\nlines",
    "dash": "-rf",
    "percent": "100%20&?#;+=",
    "dollar": "$(touch hacked)",
    "backslash": "back\\slash",
    "unicode": "ünï☃漢",
    "not utf-8": os.fsdecode(b"caf\xe9"),
    "long": "n" * 255,
    "tab and bell": "a\tb\a",
    "dots": "...",
}
"""Names that Linux allows."""


class NamesSuite(SandboxSuiteBase):
    """Any name but `/` and NUL is a file's name."""

    @pytest.mark.parametrize("name", ODD_NAMES.values(), ids=ODD_NAMES.keys())
    async def test_an_odd_name_works_everywhere(self, sandbox: Sandbox, place: str, name: str) -> None:
        """Names go through URLs and JSON: encode them so that every byte comes back."""
        path = f"{place}/names/{name}"
        await sandbox.write(path, name.encode("utf-8", "surrogateescape"))
        assert await sandbox.read_bytes(path) == os.fsencode(name)
        assert [entry.name for entry in await sandbox.list(f"{place}/names")] == [name]
        found = await sandbox.stat(path)
        assert (found.name, found.path, found.kind) == (name, path, "file")
        await sandbox.remove(path)
        assert await sandbox.list(f"{place}/names") == []

    async def test_a_listing_is_in_order_of_names(self, sandbox: Sandbox, place: str) -> None:
        """Two listings must compare: sort by name."""
        for name in ("b", "a", "C", "10", "9"):
            await sandbox.write(f"{place}/sorted/{name}", b"")
        names = [entry.name for entry in await sandbox.list(f"{place}/sorted")]
        assert names == sorted(names)
        assert len(names) == 5


class LinksSuite(ShellSuiteBase):
    """One odd entry never breaks a listing."""

    async def test_a_broken_link_is_listed_as_broken(self, sandbox: Sandbox, place: str) -> None:
        """Following a link that leads nowhere fails the whole listing: use lstat, set `broken`."""
        await sandbox.exec(
            "mkdir d; ln -s nowhere d/broken; ln -s loop d/loop; echo x > d/file; ln -s file d/good"
        )
        entries = {entry.name: entry for entry in await sandbox.list(f"{place}/d")}
        assert set(entries) == {"broken", "loop", "file", "good"}
        assert (entries["broken"].kind, entries["broken"].broken, entries["broken"].link) == (
            "symlink",
            True,
            "nowhere",
        )
        assert entries["loop"].broken
        assert not entries["good"].broken
        assert entries["good"].link == "file"
        assert (entries["file"].kind, entries["file"].link, entries["file"].size) == ("file", None, 2)

    async def test_special_files_are_listed_and_not_read(self, sandbox: Sandbox, place: str) -> None:
        """Opening a FIFO hangs for ever: list it as `other`, refuse to read it with a FileError."""
        await sandbox.exec("mkdir d; mkfifo d/fifo; echo x > d/file")
        kinds = {entry.name: entry.kind for entry in await sandbox.list(f"{place}/d")}
        assert kinds == {"fifo": "other", "file": "file"}
        async with asyncio.timeout(PATIENCE_S):
            with pytest.raises(FileError):
                await sandbox.read_bytes(f"{place}/d/fifo")

    async def test_stat_does_not_follow_links(self, sandbox: Sandbox, place: str) -> None:
        """A link's own entry is asked for: tell where it points, and a size of 0."""
        await sandbox.exec("echo content > file; ln -s file link; ln -s /no/where broken")
        link = await sandbox.stat(f"{place}/link")
        assert (link.kind, link.link, link.size, link.broken) == ("symlink", "file", 0, False)
        assert (await sandbox.stat(f"{place}/broken")).broken

    async def test_removing_a_link_leaves_its_target(self, sandbox: Sandbox, place: str) -> None:
        """A link to a directory is removed as a link: never walk through it."""
        await sandbox.exec("mkdir kept; echo x > kept/file; ln -s kept link; mkdir t; ln -s ../kept t/link")
        await sandbox.remove(f"{place}/link")
        await sandbox.remove(f"{place}/t")
        assert await sandbox.read_bytes(f"{place}/kept/file") == b"x\n"
        with pytest.raises(FileMissing):
            await sandbox.stat(f"{place}/link")

    async def test_names_made_by_commands_can_be_read(self, sandbox: Sandbox, place: str) -> None:
        """What a command made, byte by byte, is found by the same bytes."""
        await sandbox.exec(
            "mkdir d; printf raw > \"d/$(printf 'caf\\351')\"; printf nl > \"d/$(printf 'a\\nb')\""
        )
        names = sorted(entry.name for entry in await sandbox.list(f"{place}/d"))
        assert names == ["a\nb", "caf\udce9"]
        assert await sandbox.read_bytes(f"{place}/d/caf\udce9") == b"raw"

    async def test_kinds_modes_and_times_are_told(self, sandbox: Sandbox, place: str) -> None:
        """Directories have no size of their own; times are seconds since the epoch."""
        await sandbox.exec("mkdir d; chmod 750 d; echo x > f; touch -t 200102030405.06 f")
        directory, file = await sandbox.stat(f"{place}/d"), await sandbox.stat(f"{place}/f")
        assert (directory.kind, directory.mode, directory.size) == ("directory", 0o750, 0)
        assert 980_000_000 < file.modified < 983_000_000
