"""Whole trees, in both directions, and archives that would escape. Field fault 16."""

from __future__ import annotations

import io
import tarfile
from contextlib import suppress
from pathlib import Path

import pytest

from orchard_core.errors import ArchiveEscape, FileError, FileMissing, NotADirectory
from orchard_core.sandbox.contract import Sandbox
from orchard_core.testing.suites.sandbox.archives import device, escapes, stream
from orchard_core.testing.suites.sandbox.base import SandboxSuiteBase, ShellSuiteBase

ESCAPES = tuple(escapes("/outside"))


class TreesSuite(SandboxSuiteBase):
    """Directories travel as they are, and never out of their target."""

    async def test_a_tree_survives_the_way_in_and_out(
        self, sandbox: Sandbox, place: str, tmp_path: Path
    ) -> None:
        """Contents, names, empty directories, execute bits and links are the tree: keep them all."""
        source = _sample(tmp_path / "source")
        await sandbox.upload(source, f"{place}/up")
        await sandbox.download(f"{place}/up", tmp_path / "back")
        assert _shape(tmp_path / "back") == _shape(source)

    async def test_a_tree_is_a_tar_with_relative_names(
        self, sandbox: Sandbox, place: str, tmp_path: Path
    ) -> None:
        """Artifacts are stored as this tar: names are relative, and write_tree takes it back."""
        source = _sample(tmp_path / "source")
        await sandbox.upload(source, f"{place}/one")
        data = b"".join([piece async for piece in sandbox.read_tree(f"{place}/one")])
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
            names = {name.removeprefix("./") for name in archive.getnames()}
        assert {"file", "bin/run", "empty"} <= names
        assert not any(name.startswith("/") or ".." in name.split("/") for name in names)
        await sandbox.write_tree(f"{place}/two", stream(data))
        await sandbox.download(f"{place}/two", tmp_path / "back")
        assert _shape(tmp_path / "back") == _shape(source)

    async def test_an_empty_tree_makes_the_directory(
        self, sandbox: Sandbox, place: str, tmp_path: Path
    ) -> None:
        """No files is not no directory: make the target even when there is nothing to put in it."""
        (tmp_path / "empty").mkdir()
        await sandbox.upload(tmp_path / "empty", f"{place}/made/here")
        assert (await sandbox.stat(f"{place}/made/here")).kind == "directory"

    async def test_a_tree_joins_what_is_there(self, sandbox: Sandbox, place: str, tmp_path: Path) -> None:
        """Unpacking adds and replaces; it does not clear the directory first."""
        await sandbox.write(f"{place}/up/kept", b"kept")
        await sandbox.write(f"{place}/up/file", b"a longer old content")
        await sandbox.upload(_sample(tmp_path / "source"), f"{place}/up")
        assert await sandbox.read_bytes(f"{place}/up/kept") == b"kept"
        assert await sandbox.read_bytes(f"{place}/up/file") == b"content"

    async def test_a_missing_tree_is_a_typed_error(
        self, sandbox: Sandbox, place: str, tmp_path: Path
    ) -> None:
        """An empty archive would be taken for an empty directory: raise FileMissing or NotADirectory."""
        await sandbox.write(f"{place}/file", b"x")
        with pytest.raises(FileMissing):
            [piece async for piece in sandbox.read_tree(f"{place}/none")]
        with pytest.raises(NotADirectory):
            [piece async for piece in sandbox.read_tree(f"{place}/file")]
        with pytest.raises(FileMissing):
            await sandbox.download(f"{place}/none", tmp_path / "back")

    @pytest.mark.parametrize("kind", ESCAPES)
    async def test_an_archive_that_escapes_is_refused(self, sandbox: Sandbox, place: str, kind: str) -> None:
        """A member that leaves the directory overwrites what it likes: raise ArchiveEscape, write nothing."""
        await sandbox.write(f"{place}/victim", b"untouched")
        refusal = FileError if kind == "chain of links" else ArchiveEscape  # links may be made last
        with pytest.raises(refusal):
            await sandbox.write_tree(f"{place}/target", stream(escapes(place)[kind]))
        with pytest.raises(FileMissing):
            await sandbox.stat(f"{place}/escaped")
        assert await sandbox.read_bytes(f"{place}/victim") == b"untouched"
        assert await sandbox.alive()

    async def test_an_archive_with_a_device_is_refused(self, sandbox: Sandbox, place: str) -> None:
        """A device node reaches past the file system: refuse it with a FileError."""
        with pytest.raises(FileError):
            await sandbox.write_tree(f"{place}/target", stream(device()))

    @pytest.mark.parametrize("data", [b"this is no archive at all" * 100, b"\x00" * 511 + b"x"])
    async def test_what_is_no_archive_is_refused(self, sandbox: Sandbox, place: str, data: bytes) -> None:
        """Garbage taken for an empty archive loses work silently: raise a FileError."""
        with pytest.raises(FileError):
            await sandbox.write_tree(f"{place}/target", stream(data))

    async def test_upload_does_not_follow_links_of_the_host(
        self, sandbox: Sandbox, place: str, tmp_path: Path
    ) -> None:
        """A link in a task's files must not carry the host's secrets in: send it as a link, or refuse."""
        (tmp_path / "secret").write_text("host secret")
        (tmp_path / "source").mkdir()
        (tmp_path / "source" / "link").symlink_to(tmp_path / "secret")
        try:
            await sandbox.upload(tmp_path / "source", f"{place}/up")
        except ArchiveEscape:
            return
        entries = await sandbox.list(f"{place}/up")
        assert [entry for entry in entries if entry.kind == "file"] == []


class HostileTreesSuite(ShellSuiteBase):
    """What an agent left behind is hostile."""

    @pytest.mark.parametrize(
        "target", ["/etc", "../../..", "/etc/passwd", "/proc/self/environ", "a/../../.."]
    )
    async def test_a_download_never_leaves_a_link_that_leads_out(
        self, sandbox: Sandbox, place: str, tmp_path: Path, target: str
    ) -> None:
        """A host program that reads the copy would follow it: raise ArchiveEscape, or leave the link out."""
        await sandbox.exec(f"mkdir d; mkdir d/a; ln -s {target} d/link; echo x > d/file")
        back = tmp_path / "back"
        with suppress(ArchiveEscape):
            await sandbox.download(f"{place}/d", back)
        links = [path for path in back.rglob("*") if path.is_symlink()]
        assert [link for link in links if not link.resolve().is_relative_to(back.resolve())] == []

    async def test_a_download_does_not_write_through_a_link_of_the_host(
        self, sandbox: Sandbox, place: str, tmp_path: Path
    ) -> None:
        """A link that stands in the target already must not be written through."""
        (tmp_path / "outside").mkdir()
        (tmp_path / "back").mkdir()
        (tmp_path / "back" / "door").symlink_to(tmp_path / "outside")
        await sandbox.exec("mkdir d; mkdir d/door; echo x > d/door/escaped")
        with suppress(FileError):
            await sandbox.download(f"{place}/d", tmp_path / "back")
        assert list((tmp_path / "outside").iterdir()) == []

    async def test_an_archive_does_not_go_through_a_link_that_is_there(
        self, sandbox: Sandbox, place: str
    ) -> None:
        """The agent may have planted a link: nothing unpacked later may be written through it."""
        await sandbox.exec("mkdir outside target; ln -s ../outside target/door")
        archive = escapes(place)["relative link"]
        with pytest.raises(FileError):
            await sandbox.write_tree(f"{place}/target", stream(archive))
        assert await sandbox.list(f"{place}/outside") == []

    async def test_special_files_do_not_stop_a_download(
        self, sandbox: Sandbox, place: str, tmp_path: Path
    ) -> None:
        """A FIFO or a socket left behind cannot be copied: leave it out, copy the rest."""
        await sandbox.exec("mkdir d; mkfifo d/fifo; echo x > d/file; ln -s nowhere d/broken")
        await sandbox.download(f"{place}/d", tmp_path / "back")
        assert (tmp_path / "back" / "file").read_text() == "x\n"
        assert not (tmp_path / "back" / "fifo").exists()


def _sample(root: Path) -> Path:
    (root / "bin").mkdir(parents=True)
    (root / "empty").mkdir()
    (root / "deep" / "er" / "est").mkdir(parents=True)
    (root / "file").write_bytes(b"content")
    (root / "bin" / "run").write_bytes(b"#!/bin/sh\n")
    (root / "bin" / "run").chmod(0o755)
    (root / "deep" / "er" / "est" / "odd name\n'q'").write_bytes(bytes(range(256)))
    (root / "deep" / "link").symlink_to("er/est")
    (root / ("long-" + "n" * 200)).write_bytes(b"x" * 70_000)
    return root


def _shape(root: Path) -> dict[str, object]:
    shape: dict[str, object] = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if path.is_symlink():
            shape[name] = ("link", str(path.readlink()))
        elif path.is_dir():
            shape[name] = "directory"
        else:
            shape[name] = (path.read_bytes(), path.stat().st_mode & 0o111)
    return shape
