"""Tar archives on the driver's side. One that comes out of a sandbox was made by an adversary."""

from __future__ import annotations

import errno
import os
import shutil
import tarfile
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Literal

from orchard_core.errors import ArchiveEscape, FileError
from orchard_core.sandbox.agent.tar_member import bounded_member

Links = Literal["refuse", "skip"]
"""What becomes of a symbolic link that leads out of the tree: refuse the archive, or leave the link out."""

TREE_MAX = 8 << 30
"""Bytes that a directory copied out may have, unless its caller says another number."""
_ENTRIES_MAX = 1_000_000
_SMALLER = "pack or remove files inside first, or stream the archive with read_tree()"
_COPY = 1 << 20
_ODD_NAMES = frozenset({errno.EEXIST, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.ENOTDIR})
"""What names that are too long, or stand for a file and a directory at once, lead to."""


def pack(source: Path, out: BinaryIO) -> None:
    """Write the content of a directory; sockets, pipes and devices are left out."""
    if not source.is_dir():
        raise FileError(f"{source} is not a directory that could be uploaded")
    with tarfile.open(
        fileobj=out, mode="w|", format=tarfile.GNU_FORMAT, encoding="utf-8", errors="surrogateescape"
    ) as archive:
        for name in sorted(os.listdir(source)):  # noqa: PTH208  # names only, undecodable ones too
            archive.add(source / name, arcname=name, filter=_packable)


def _packable(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member if member.isreg() or member.isdir() or member.issym() or member.islnk() else None


def unpack(source: BinaryIO, target: Path, links: Links = "refuse", *, limit: int = TREE_MAX) -> None:
    """Unpack below `target`. Raises ArchiveEscape at the first member that would leave it, FileError when the
    files together have more than `limit` bytes."""
    target.mkdir(parents=True, exist_ok=True)
    try:
        with tarfile.open(
            fileobj=source, mode="r|", encoding="utf-8", errors="surrogateescape", tarinfo=bounded_member()
        ) as archive:
            _Unpacking(target.resolve(), links, limit).run(archive)
    except (tarfile.TarError, ValueError, OverflowError, RecursionError) as error:
        # A header may claim any number, and name headers may name each other's names.
        raise FileError(f"what the sandbox sent is not a whole archive: {error}") from error
    except OSError as error:
        if error.errno not in _ODD_NAMES:
            raise
        raise FileError(f"what the sandbox sent holds a name that cannot be used: {error}") from error


class _Unpacking:
    """Links are made after all files, so no member is ever written through one from the same archive."""

    def __init__(self, root: Path, links: Links, limit: int) -> None:
        self._root = root
        self._links = links
        self._limit = limit
        self._bytes = 0
        self._entries = 0
        self._later: list[tarfile.TarInfo] = []
        self._modes: list[tuple[Path, int]] = []

    def run(self, archive: tarfile.TarFile) -> None:
        while (member := archive.next()) is not None:
            self._count(member)
            self._member(archive, member)
            archive.members.clear()  # type: ignore[attr-defined]  # tarfile would remember every one
        made = [(self._link(member), member) for member in self._later]
        for path, member in made:
            if not _beneath(Path(os.path.realpath(path)), self._root):
                path.unlink()
                self._refuse(member)
        for path, mode in reversed(self._modes):
            path.chmod(mode)

    def _count(self, member: tarfile.TarInfo) -> None:
        self._entries += 1
        self._bytes += member.size if member.isreg() else 0  # of a sparse file too, what it will have
        if self._bytes > self._limit:
            raise too_large(self._limit)
        if self._entries > _ENTRIES_MAX:
            raise FileError(f"the archive has more than {_ENTRIES_MAX} entries", hint=_SMALLER)

    def _member(self, archive: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        path = self._place(member)
        if member.isdir():
            self._directory(path)
            self._modes.append((path, member.mode & 0o777 | 0o700))
        elif member.isreg():
            self._file(archive, member, path)
        elif member.issym():
            if self._leads_out(member):
                self._refuse(member)
            else:
                self._later.append(member)
        elif member.islnk():
            self._hard_link(member, path)
        else:
            raise FileError(f"the archive holds {member.name!r}, which is neither file, directory nor link")

    def _place(self, member: tarfile.TarInfo) -> Path:
        name = PurePosixPath(member.name)
        if name.is_absolute() or ".." in name.parts or "\0" in member.name:
            raise _escape(member)
        return self._root.joinpath(*name.parts)

    def _parents(self, path: Path) -> None:
        """Make the directories above `path`; one that is a link is refused, wherever it leads."""
        step = self._root
        for part in path.relative_to(self._root).parts[:-1]:
            step = step / part
            if step.is_symlink():
                raise ArchiveEscape(f"{step} is a link, and the archive writes through it")
            if not step.is_dir():
                self._clear(step)
                step.mkdir()

    def _clear(self, path: Path) -> None:
        if path.is_symlink() or (path.exists() and not path.is_dir()):
            path.unlink()

    def _directory(self, path: Path) -> None:
        if path != self._root:
            self._parents(path)
            self._clear(path)
            path.mkdir(exist_ok=True)

    def _file(self, archive: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> None:
        self._parents(path)
        self._clear(path)
        content = archive.extractfile(member)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
            if content is not None:
                shutil.copyfileobj(content, file, _COPY)
            os.fchmod(file.fileno(), member.mode & 0o777)
        os.utime(path, (member.mtime, member.mtime))

    def _hard_link(self, member: tarfile.TarInfo, path: Path) -> None:
        name = PurePosixPath(member.linkname)
        if name.is_absolute() or ".." in name.parts:
            raise _escape(member)
        target = self._root.joinpath(*name.parts)
        self._parents(target)
        if target.is_symlink() or not target.is_file():
            raise FileError(f"{member.name!r} is a hard link to what is no file of the archive")
        self._parents(path)
        self._clear(path)
        os.link(target, path, follow_symlinks=False)

    def _leads_out(self, member: tarfile.TarInfo) -> bool:
        to = PurePosixPath(member.linkname)
        here = os.path.normpath(PurePosixPath(member.name).parent / to)
        return to.is_absolute() or here == ".." or here.startswith("../")

    def _link(self, member: tarfile.TarInfo) -> Path:
        path = self._place(member)
        self._parents(path)
        self._clear(path)
        path.symlink_to(member.linkname)
        return path

    def _refuse(self, member: tarfile.TarInfo) -> None:
        if self._links == "refuse":
            raise _escape(member)


def too_large(limit: int) -> FileError:
    """For a directory whose files, or whose archive, have more bytes than are allowed."""
    return FileError(f"the directory has more than {limit} bytes", hint=_SMALLER)


def _beneath(path: Path, root: Path) -> bool:
    return path == root or root in path.parents


def _escape(member: tarfile.TarInfo) -> ArchiveEscape:
    to = f" (link to {member.linkname!r})" if member.linkname else ""
    return ArchiveEscape(f"the archive's member {member.name!r}{to} leaves its directory")
