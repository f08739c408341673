"""Putting what was collected from one sandbox into another.

What comes out of an agent's sandbox is hostile. A symbolic link among the artifacts could lead a verifier
that reads `answer.txt` to its own expected answer under /tests, so such links are left out on the way in.
"""

from __future__ import annotations

import io
import posixpath
import tarfile
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass

from orchard_core.errors import VerifierFailed
from orchard_core.reward.contract import Blobs
from orchard_core.sandbox.contract import Sandbox
from orchard_core.types.rollout import Artifact

RESERVED = ("/tests", "/logs/verifier", "/solution")
"""Directories inside that belong to the verifier; no artifact may be, hold or lead to one of them."""

CLOSED_TO_LINKS = (*RESERVED, "/proc", "/dev")
"""Where a link among the artifacts may not lead."""

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
        data = await blobs.read(artifact.sha256)
        if artifact.kind == "file":
            await sandbox.write(artifact.path, data)
            continue
        tree = sift(data, artifact.path)
        await sandbox.write_tree(artifact.path, _chunks(tree.tar))
        await _link(sandbox, artifact.path, tree.outward)
        dropped += [f"{artifact.path}/{name} was left out" for name in tree.traps]
    return dropped


@dataclass(frozen=True, slots=True, kw_only=True)
class SiftedTree:
    """A tar with its doubtful entries taken out."""

    tar: bytes
    """What can be unpacked."""
    outward: Mapping[str, str]
    """Links that leave the directory for a harmless place, such as /usr/bin/python3: name to target."""
    traps: tuple[str, ...]
    """Devices, pipes, and links that lead, or may lead, to the verifier's directories; by name."""


def sift(tar: bytes, root: str) -> SiftedTree:
    """Look at every entry. Raises VerifierFailed when the bytes are no tar."""
    try:
        with tarfile.open(fileobj=io.BytesIO(tar), mode="r:") as archive:
            members = archive.getmembers()
            traps = {item.name for item in members if item.isdev() or _is_trap(item, root)}
            links = (item for item in members if item.issym() and item.name not in traps)
            outward = {item.name: item.linkname for item in links if _leaves(item)}
            traps |= {item.name for item in members if item.islnk() and item.linkname in traps | {*outward}}
            out = {*traps, *outward}
            kept = _copy_without(archive, out) if out else tar
    except (tarfile.TarError, ValueError, EOFError) as error:
        raise VerifierFailed(
            f"the artifact of {root} is not a readable tar: {error}",
            hint="the stored blob is damaged; run the task again",
        ) from error
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


def _copy_without(archive: tarfile.TarFile, names: set[str]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as copy:
        for member in archive.getmembers():
            if member.name not in names:
                copy.addfile(member, archive.extractfile(member) if member.isreg() else None)
    return out.getvalue()


async def _chunks(data: bytes, size: int = 1 << 20) -> AsyncIterator[bytes]:
    for start in range(0, len(data), size):
        yield data[start : start + size]
