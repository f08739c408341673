"""Putting what was collected from one sandbox into another.

What comes out of an agent's sandbox is hostile. A symbolic link among the artifacts could lead a verifier
that reads `answer.txt` to its own expected answer under /tests, so such links are left out on the way in.
"""

from __future__ import annotations

import asyncio
import io
import posixpath
import tarfile
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from tempfile import SpooledTemporaryFile
from typing import IO

from orchard_core.errors import IsADirectory, NotADirectory, VerifierFailed
from orchard_core.reward.contract import Blobs
from orchard_core.sandbox.contract import Sandbox
from orchard_core.types.rollout import Artifact

RESERVED = ("/tests", "/logs/verifier", "/solution")
"""Directories inside that belong to the verifier; no artifact may be, hold or lead to one of them."""

CLOSED_TO_LINKS = (*RESERVED, "/proc", "/dev")
"""Where a link among the artifacts may not lead."""

ENTRIES = 500_000
"""Entries of a directory that is put into a verifier's sandbox; each costs about a kilobyte of memory."""

IN_MEMORY = 32 << 20
"""A changed copy of a tar that is larger than this many bytes goes to a temporary file."""

_LINK = 'while [ $# -gt 1 ]; do ln -sfn -- "$1" "$2" || exit 1; shift 2; done'


def overlaps(path: str, roots: Iterable[str]) -> bool:
    """Whether `path` is one of `roots`, lies under one, or holds one."""
    base = posixpath.normpath(path).rstrip("/") + "/"
    return any(base.startswith(f"{root}/") or f"{root}/".startswith(base) for root in roots)


async def place(sandbox: Sandbox, artifacts: Iterable[Artifact], blobs: Blobs) -> list[str]:
    """Write artifacts into a sandbox at the paths they came from.

    Returns one line for each entry that was left out. Raises SandboxError, VerifierFailed when a blob is
    not what it claims, RecordCorrupt.
    """
    dropped: list[str] = []
    for artifact in artifacts:
        try:
            traps = await _place(sandbox, artifact, blobs)
        except (IsADirectory, NotADirectory) as error:
            # The agent made a file of the task's directory, or the reverse. That is its answer, no accident.
            dropped.append(f"{artifact.path} was left out: {error.message}")
            continue
        dropped += [f"{artifact.path}/{name} was left out" for name in traps]
    return dropped


async def _place(sandbox: Sandbox, artifact: Artifact, blobs: Blobs) -> tuple[str, ...]:
    """Write one; names of the entries that were left out."""
    if artifact.kind == "file":
        await sandbox.write(artifact.path, await blobs.read(artifact.sha256))
        return ()
    tree = await asyncio.to_thread(sift, await blobs.read(artifact.sha256), artifact.path)
    with tree.tar:
        await sandbox.write_tree(artifact.path, _chunks(tree.tar))
    await _link(sandbox, artifact.path, tree.outward)
    return tree.traps


@dataclass(frozen=True, slots=True, kw_only=True)
class SiftedTree:
    """A tar with its doubtful entries taken out."""

    tar: IO[bytes]
    """What can be unpacked, from its start on. Close it."""
    outward: Mapping[str, str]
    """Links that leave the directory for a harmless place, such as /usr/bin/python3: name to target."""
    traps: tuple[str, ...]
    """Devices, pipes, and links that lead, or may lead, to the verifier's directories; by name."""


def sift(tar: bytes, root: str) -> SiftedTree:
    """Look at every entry. A tar without doubtful ones is not copied.

    Raises VerifierFailed when the bytes are no tar, or one of more than ENTRIES entries.
    """
    source = io.BytesIO(tar)  # shares the bytes
    try:
        with tarfile.open(fileobj=source, mode="r:") as archive:
            members = list(islice(archive, ENTRIES + 1))
            if len(members) > ENTRIES:
                raise VerifierFailed(
                    f"the artifact of {root} has more than {ENTRIES} entries",
                    hint="let the task declare a smaller directory",
                )
            traps = {item.name for item in members if item.isdev() or _is_trap(item, root)}
            links = (item for item in members if item.issym() and item.name not in traps)
            outward = {item.name: item.linkname for item in links if _leaves(item)}
            traps |= {item.name for item in members if item.islnk() and item.linkname in traps | {*outward}}
            out = {*traps, *outward}
            kept = _copy_without(archive, out) if out else source
    except (tarfile.TarError, ValueError, EOFError) as error:
        raise VerifierFailed(
            f"the artifact of {root} is not a readable tar: {error}",
            hint="the stored blob is damaged; run the task again",
        ) from error
    kept.seek(0)
    return SiftedTree(tar=kept, outward=outward, traps=tuple(sorted(traps)))


def _is_trap(link: tarfile.TarInfo, root: str) -> bool:
    if not link.issym():
        return False
    steps = link.linkname.split("/")
    first_name = next((i for i, step in enumerate(steps) if step not in {"", ".", ".."}), len(steps))
    if ".." in steps[first_name:]:
        return True  # `sub/../x` depends on what `sub` is, which only the sandbox knows
    return overlaps(posixpath.join(root, posixpath.dirname(link.name), link.linkname), CLOSED_TO_LINKS)


def _leaves(link: tarfile.TarInfo) -> bool:
    inside = posixpath.normpath(posixpath.join(posixpath.dirname(link.name), link.linkname))
    return inside.startswith(("/", "../")) or inside == ".."


async def _link(sandbox: Sandbox, root: str, links: Mapping[str, str]) -> None:
    """Make links that no tar stream may carry."""
    words = [word for name, target in links.items() for word in (target, posixpath.join(root, name))]
    for start in range(0, len(words), 400):
        made = await sandbox.exec(["/bin/sh", "-c", _LINK, "sh", *words[start : start + 400]], cwd="/")
        if not made.ok:
            raise VerifierFailed(f"links below {root} could not be made: {made.text[-300:]}")


def _copy_without(archive: tarfile.TarFile, names: set[str]) -> IO[bytes]:
    out: IO[bytes] = SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115 - the caller closes it
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as copy:
        for member in archive.getmembers():
            if member.name not in names:
                copy.addfile(member, archive.extractfile(member) if member.isreg() else None)
    return out


async def _chunks(file: IO[bytes], size: int = 1 << 20) -> AsyncIterator[bytes]:
    while data := await asyncio.to_thread(file.read, size):
        yield data
