"""Tar archives, honest and hostile, made in memory."""

from __future__ import annotations

import io
import tarfile
from collections.abc import AsyncIterator, Callable

Build = Callable[[tarfile.TarFile], None]


def tar_of(build: Build) -> bytes:
    """The archive that `build` fills."""
    spool = io.BytesIO()
    with tarfile.open(fileobj=spool, mode="w", format=tarfile.PAX_FORMAT) as archive:
        build(archive)
    return spool.getvalue()


def add_file(archive: tarfile.TarFile, name: str, data: bytes = b"written") -> None:
    """A regular file."""
    member = tarfile.TarInfo(name)
    member.size = len(data)
    archive.addfile(member, io.BytesIO(data))


def add_link(archive: tarfile.TarFile, name: str, target: str, *, hard: bool = False) -> None:
    """A symbolic or hard link."""
    member = tarfile.TarInfo(name)
    member.type = tarfile.LNKTYPE if hard else tarfile.SYMTYPE
    member.linkname = target
    archive.addfile(member)


def escapes(outside: str) -> dict[str, bytes]:
    """Archives that would write to the absolute path `outside`/escaped, the parent of the target, by name."""

    def through_link(target: str) -> Build:
        def build(archive: tarfile.TarFile) -> None:
            add_link(archive, "door", target)
            add_file(archive, "door/escaped")

        return build

    def chain(archive: tarfile.TarFile) -> None:
        archive.addfile(_directory("a"))
        add_link(archive, "a/up", "..")
        add_link(archive, "door", "a/up/..")
        add_file(archive, "door/escaped")

    def hard(archive: tarfile.TarFile) -> None:
        add_link(archive, "door", "../victim", hard=True)
        add_file(archive, "door", b"changed")

    def hard_after_soft(archive: tarfile.TarFile) -> None:
        add_link(archive, "door", "..")
        add_link(archive, "hard", "door/victim", hard=True)

    return {
        "dot dot": tar_of(lambda archive: add_file(archive, "../escaped")),
        "hidden dot dot": tar_of(lambda archive: add_file(archive, "a/../../escaped")),
        "absolute": tar_of(lambda archive: add_file(archive, f"{outside}/escaped")),
        "relative link": tar_of(through_link("..")),
        "absolute link": tar_of(through_link(outside)),
        "chain of links": tar_of(chain),
        "hard link": tar_of(hard),
        "hard link through a link": tar_of(hard_after_soft),
    }


def device() -> bytes:
    """An archive with a device node."""

    def build(archive: tarfile.TarFile) -> None:
        member = tarfile.TarInfo("device")
        member.type = tarfile.CHRTYPE
        member.devmajor, member.devminor = 1, 3
        archive.addfile(member)

    return tar_of(build)


async def stream(data: bytes, piece: int = 700) -> AsyncIterator[bytes]:
    """`data` in pieces that fall between blocks."""
    for start in range(0, len(data), piece):
        yield data[start : start + piece]


def _directory(name: str) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type = tarfile.DIRTYPE
    member.mode = 0o755
    return member
