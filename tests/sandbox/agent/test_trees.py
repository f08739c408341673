"""Whole directories in and out. Nothing leaves its directory, in either direction."""

from __future__ import annotations

import io
import os
import stat
import tarfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from orchard_core.errors import ArchiveEscape, FileError, FileMissing
from orchard_core.sandbox.agent import AgentClient, unpack
from orchard_core.sandbox.agent.tar_member import HEADERS_MAX


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type = kind
    info.linkname = link
    info.mode = 0o755
    return info


SYM, HARD, DIR = tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE
ESCAPES = {
    "dotdot": [member("../evil")],
    "dotdot inside": [member("a/../../evil")],
    "absolute": [member("/tmp/orchard-evil")],
    "absolute link": [member("link", SYM, "/etc")],
    "relative link": [member("a", DIR), member("a/link", SYM, "../../out")],
    "link then file through it": [member("link", SYM, "../out"), member("link/evil")],
    "hard link out": [member("hard", HARD, "../secret")],
    "absolute hard link": [member("hard", HARD, "/etc/passwd")],
    "link by way of a link": [
        member("p/q", DIR),
        member("p/q/s", SYM, "../.."),
        member("t", SYM, "p/q/s/../out"),
    ],
    "link to a later link": [
        member("t", SYM, "p/q/s/../out"),
        member("p/q", DIR),
        member("p/q/s", SYM, "../.."),
    ],
}
BROKEN = {
    "device": [member("null", tarfile.CHRTYPE)],
    "pipe": [member("pipe", tarfile.FIFOTYPE)],
    "hard link to nothing": [member("hard", HARD, "missing")],
}


def archive(members: list[tarfile.TarInfo]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for info in members:
            content = b"evil" if info.isreg() else b""
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return out.getvalue()


async def once(data: bytes) -> AsyncIterator[bytes]:
    yield data


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def everything(root: Path) -> dict[str, tuple[str, bytes]]:
    """Every name below root with its mode and its content or link target."""
    found = {}
    for path in root.rglob("*"):
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            said = ("link", os.fsencode(path.readlink()))
        else:
            said = (f"{mode:o}", path.read_bytes() if stat.S_ISREG(mode) else b"")
        found[str(path.relative_to(root))] = said
    return found


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    (root / "sub/empty").mkdir(parents=True)
    (root / "sub/file").write_bytes(os.urandom(100_000))
    (root / "sub/script").write_text("#!/bin/sh\n")
    (root / "sub/script").chmod(0o755)
    (root / "link").symlink_to("sub/file")
    (root / "up").mkdir()
    (root / "up/link").symlink_to("../sub")
    for name in ("with space", "new\nline", "é", "bad-\udcff", "n" * 200):
        (root / name).write_text(name, "utf-8", "surrogateescape")
    return root


async def test_a_tree_round_trips(agent: AgentClient, tree: Path, tmp_path: Path) -> None:
    await agent.upload(tree, str(tmp_path / "inside"))
    assert everything(tmp_path / "inside") == everything(tree)
    await agent.download(str(tmp_path / "inside"), tmp_path / "back")
    assert everything(tmp_path / "back") == everything(tree)


async def test_an_upload_merges_and_replaces(agent: AgentClient, tree: Path, tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    (inside / "sub").mkdir(parents=True)
    (inside / "sub/file").write_text("old")
    (inside / "sub/mine").write_text("kept")
    (inside / "link").write_text("was a file")
    await agent.upload(tree, str(inside))
    assert (inside / "sub/mine").read_text() == "kept"
    assert (inside / "sub/file").read_bytes() == (tree / "sub/file").read_bytes()
    assert (inside / "link").is_symlink()


async def test_sockets_and_pipes_are_left_out(agent: AgentClient, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    os.mkfifo(source / "pipe")
    (source / "file").write_text("x")
    await agent.upload(source, str(tmp_path / "inside"))
    await agent.download(str(source), tmp_path / "back")
    assert names(tmp_path / "inside") == names(tmp_path / "back") == ["file"]


@pytest.mark.parametrize("name", ESCAPES)
async def test_the_agent_refuses_an_archive_that_escapes(
    agent: AgentClient, tmp_path: Path, name: str
) -> None:
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "out").mkdir()
    with pytest.raises(ArchiveEscape):
        await agent.write_tree(str(tmp_path / "in"), once(archive(ESCAPES[name])))
    assert names(tmp_path) == ["in", "out", "secret"]
    assert names(tmp_path / "out") == []


@pytest.mark.parametrize("name", ESCAPES)
def test_the_driver_refuses_an_archive_that_escapes(tmp_path: Path, name: str) -> None:
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "out").mkdir()
    with pytest.raises(ArchiveEscape):
        unpack(io.BytesIO(archive(ESCAPES[name])), tmp_path / "in")
    assert names(tmp_path) == ["in", "out", "secret"]
    assert names(tmp_path / "out") == []


@pytest.mark.parametrize("name", BROKEN)
async def test_what_is_no_file_is_refused_both_ways(agent: AgentClient, tmp_path: Path, name: str) -> None:
    with pytest.raises(FileError):
        await agent.write_tree(str(tmp_path / "in"), once(archive(BROKEN[name])))
    with pytest.raises(FileError):
        unpack(io.BytesIO(archive(BROKEN[name])), tmp_path / "out")


@pytest.mark.parametrize(
    ("name", "headers"),
    [("a", {"mtime": "nan"}), ("a", {"mtime": "1e300"}), ("x" * 300, {})],
)
def test_odd_numbers_and_names_are_errors_with_a_type(
    tmp_path: Path, name: str, headers: dict[str, str]
) -> None:
    odd = tarfile.TarInfo(name)
    odd.pax_headers = headers
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w", format=tarfile.PAX_FORMAT) as made:
        made.addfile(odd)
    with pytest.raises(FileError):
        unpack(io.BytesIO(whole.getvalue()), tmp_path / "in")


def plant_link(root: Path, outside: Path) -> None:
    root.mkdir()
    outside.mkdir()
    (root / "dir").symlink_to(outside)


async def test_links_that_wait_in_the_target_are_not_followed_out(agent: AgentClient, tmp_path: Path) -> None:
    plant_link(tmp_path / "in", tmp_path / "outside")
    with pytest.raises(ArchiveEscape):
        await agent.write_tree(str(tmp_path / "in"), once(archive([member("dir/evil")])))
    with pytest.raises(ArchiveEscape):
        unpack(io.BytesIO(archive([member("dir/evil")])), tmp_path / "in")
    assert names(tmp_path / "outside") == []


async def test_a_download_refuses_or_skips_links_that_lead_out(agent: AgentClient, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "file").write_text("x")
    (source / "passwd").symlink_to("/etc/passwd")
    with pytest.raises(ArchiveEscape, match="passwd"):
        await agent.download(str(source), tmp_path / "strict")
    await agent.download(str(source), tmp_path / "lenient", links="skip")
    assert names(tmp_path / "lenient") == ["file"]
    with pytest.raises(ArchiveEscape, match="passwd"):
        await agent.upload(source, str(tmp_path / "strict-in"))
    await agent.upload(source, str(tmp_path / "lenient-in"), links="skip")
    assert names(tmp_path / "lenient-in") == ["file"]


async def test_set_user_bits_do_not_travel(agent: AgentClient, tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    (tmp_path / "source/tool").write_text("x")
    (tmp_path / "source/tool").chmod(0o4755)
    await agent.download(str(tmp_path / "source"), tmp_path / "back")
    assert stat.S_IMODE((tmp_path / "back/tool").stat().st_mode) == 0o755


async def test_missing_sources_are_errors(agent: AgentClient, tmp_path: Path) -> None:
    with pytest.raises(FileMissing):
        await agent.download(str(tmp_path / "missing"), tmp_path / "back")
    with pytest.raises(FileError):
        await agent.upload(tmp_path / "missing", str(tmp_path / "inside"))


async def test_what_is_no_archive_is_refused(agent: AgentClient, tmp_path: Path) -> None:
    with pytest.raises(FileError):
        await agent.write_tree(str(tmp_path / "in"), once(b"no archive at all" * 1000))
    with pytest.raises(FileError):
        await agent.write_tree(str(tmp_path / "in"), once(archive([member("whole")] * 3)[:514]))


async def test_a_large_tree_costs_no_memory(agent: AgentClient, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "large").write_bytes(os.urandom(1 << 20) * 64)
    await agent.upload(source, str(tmp_path / "inside"))
    await agent.download(str(tmp_path / "inside"), tmp_path / "back")
    assert (tmp_path / "back/large").read_bytes() == (source / "large").read_bytes()
    assert (await agent.metrics()).rss_bytes < 30e6


async def test_a_file_with_fewer_bytes_than_it_promised_costs_no_other(
    agent: AgentClient, tmp_path: Path
) -> None:
    """A background process may cut a file short meanwhile. Files of /sys promise 4096 bytes and give few."""
    await agent.download("/sys/class/net/lo/statistics", tmp_path / "back")
    assert {"rx_bytes", "tx_bytes"} <= set(names(tmp_path / "back"))
    assert (tmp_path / "back/rx_bytes").read_bytes().rstrip(b"\0").strip().isdigit()


def special(kind: bytes, size: int, claimed: int | None = None) -> bytes:
    """A header of names or attributes with `size` bytes, or with a claim only."""
    info = member("special", kind)
    info.size = size if claimed is None else claimed
    return info.tobuf(tarfile.GNU_FORMAT) + b"x" * size + b"\0" * (-size % 512)


_KINDS = (tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK, tarfile.XHDTYPE, tarfile.XGLTYPE)


@pytest.mark.parametrize("kind", _KINDS)
def test_names_and_attributes_are_not_read_whatever_their_size(tmp_path: Path, kind: bytes) -> None:
    source = io.BytesIO(special(kind, 0, claimed=1 << 40) + b"x" * (64 << 20))
    with pytest.raises(FileError, match="names or attributes"):
        unpack(source, tmp_path / "in")
    assert source.tell() < 1 << 20, "it is refused by its claim"


@pytest.mark.parametrize("kind", _KINDS)
def test_many_small_headers_do_not_add_up(tmp_path: Path, kind: bytes) -> None:
    attributes = b"30 comment=abcdefghijklmnopqr\n"
    one = special(kind, 0, claimed=len(attributes)) + attributes.ljust(512, b"\0")
    many = one * (2 * HEADERS_MAX // len(one))
    with pytest.raises(FileError):
        unpack(io.BytesIO(many + archive([member("file")])), tmp_path / "in")


def test_a_member_of_negative_size_is_refused(tmp_path: Path) -> None:
    info = member("file")
    block = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    block[124:136] = b"\xff" * 12  # base 256, -1
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    with pytest.raises(FileError):
        unpack(io.BytesIO(bytes(block) + b"\0" * 1024), tmp_path / "in")


def test_long_names_are_still_unpacked(tmp_path: Path) -> None:
    name = "/".join(["d" * 200] * 5)
    unpack(io.BytesIO(archive([member(name), member(name + "2")])), tmp_path / "in")
    assert (tmp_path / "in" / name).read_bytes() == b"evil"


def test_files_may_not_add_up_to_more_than_the_limit(tmp_path: Path) -> None:
    made = archive([member("one"), member("two"), member("three")])
    unpack(io.BytesIO(made), tmp_path / "in", limit=12)
    with pytest.raises(FileError, match="more than 11 bytes"):
        unpack(io.BytesIO(made), tmp_path / "out", limit=11)
    assert not (tmp_path / "out/three").exists()


async def test_a_download_ends_at_its_limit(agent: AgentClient, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "small").write_bytes(b"x" * 1000)
    await agent.download(str(source), tmp_path / "back", limit=1000)
    with (source / "huge").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(FileError, match="more than"):
        await agent.download(str(source), tmp_path / "much", limit=1 << 20)
    assert (await agent.exec(["echo", "well"])).stdout == b"well\n"


async def test_a_nest_made_to_hold_the_walk_is_left_out_and_not_taken(
    agent: AgentClient, tmp_path: Path
) -> None:
    top = tmp_path / "nest"
    top.mkdir()
    (top / "kept").write_bytes(b"kept")
    await agent.exec(f"cd '{top}' && i=0; while [ $i -lt 400 ]; do mkdir d; cd d; i=$((i+1)); done")
    read = b"".join([piece async for piece in agent.read_tree(str(top))])
    with tarfile.open(fileobj=io.BytesIO(read)) as tar:
        names = tar.getnames()
    assert "kept" in names
    assert max(name.count("/") for name in names) == 255
    with pytest.raises(FileError, match="deeper than 256"):
        await agent.write_tree(str(tmp_path / "in"), once(archive([member("d/" * 256 + "file")])))
