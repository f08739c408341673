"""The writable layers of one sandbox on the host, made before bubblewrap mounts them."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from orchard_core.errors import SandboxUnsupported
from orchard_core.sandbox.local.account import ROOT, Account
from orchard_core.sandbox.local.base import copy_base
from orchard_core.sandbox.local.command import Layer
from orchard_core.sandbox.local.veil import Veils
from orchard_core.types.sandbox import FileInput, ImageRef

_WORKSPACE = {"workspace": 0o755}
"""Nearly every sandbox writes there: its own from the start is cheaper than a copy on the first write."""
_ALWAYS = {"proc": 0o755, "dev": 0o755, "tmp": 0o1777, **_WORKSPACE}
"""Mount points and places that every image needs; those of the image itself are merged with them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostImage:
    """What the host image is made of; built once a driver."""

    base: Path
    """The small root of our own."""
    shown: tuple[tuple[str, Path], ...]
    """(name below the root, directory of the host) laid over it."""
    veils: Veils | None
    """Cover what not everybody may read; None: nothing is covered, for a trial that runs no commands."""


def check_image(image: ImageRef, *, overlays: bool) -> None:
    """Raises SandboxUnsupported for an image that cannot be had."""
    if image.kind not in {"host", "rootfs"}:
        raise SandboxUnsupported(
            f"the local provider cannot run image {image}",
            hint="unpack it and name the directory, `rootfs:PATH`, or use a container provider",
        )
    if image.kind == "host":
        return
    path = Path(image.value)
    if not path.is_absolute() or not path.is_dir() or path == Path("/"):
        raise SandboxUnsupported(
            f"{image.value!r} is not a directory with a root file system",
            hint="write rootfs: and an absolute path; this machine's own root is the image `host`",
        )
    if not overlays:
        raise SandboxUnsupported(
            "this host's file systems cannot carry an overlay, which a rootfs image needs",
            hint="set ORCHARD_STATE_DIR to a directory on ext4, xfs, btrfs or tmpfs",
        )


def check_files(files: Sequence[FileInput], image: ImageRef, host: HostImage, *, overlays: bool) -> None:
    """Raises SandboxUnsupported for a file that would lie in a read-only part of the sandbox."""
    if image.kind != "host":
        return
    closed = {name for name, path in host.shown if not (overlays and _ours(path))}
    for item in files:
        top = posixpath.normpath(item.path).lstrip("/").partition("/")[0]
        link = host.base / top
        shown = str(link.readlink()).lstrip("/").partition("/")[0] if link.is_symlink() else top
        if shown in closed:
            raise SandboxUnsupported(
                f"the file {item.path!r} cannot be written: /{shown} is read-only inside",
                hint="use /opt, /root or /workspace; or run as root; or take a rootfs: image",
            )


def plan_layers(box: Path, image: ImageRef, host: HostImage, *, overlays: bool) -> tuple[Layer, ...]:
    """What is mounted for a sandbox whose directories lie, or shall lie, below `box`; the root first."""
    if image.kind == "rootfs":
        return (_overlay(box, "root", "/", Path(image.value)),)
    if overlays:
        root = _overlay(box, "root", "/", host.base)
        return (root, *(_shown(box, name, path, host.veils) for name, path in host.shown))
    plain = Layer(target="/", lower=None, upper=box / "root")
    return (plain, *(_read_only(name, path, host.veils) for name, path in host.shown))


def make_layers(
    box: Path, image: ImageRef, host: HostImage, account: Account, *, overlays: bool
) -> tuple[Layer, ...]:
    """Make the directories of a new sandbox and say what to mount."""
    layers = plan_layers(box, image, host, overlays=overlays)
    for upper in writable(layers):
        _directory(upper, 0o755)
    if layers[0].lower is None:
        copy_base(host.base, box / "root")
    _prepare(layers[0], image, account)
    make_scratch(layers)
    return layers


def writable(layers: tuple[Layer, ...]) -> list[Path]:
    """The directories that take the changes: all that a sandbox has of its own."""
    return [layer.upper for layer in layers if layer.upper is not None]


def make_scratch(layers: tuple[Layer, ...]) -> None:
    """The empty directories that overlays work with, beside the ones that take the changes."""
    for layer in layers:
        if layer.work is not None:
            _directory(layer.work, 0o755)


def _shown(box: Path, name: str, path: Path, veils: Veils | None) -> Layer:
    """Writable where the files are ours: another owner's have no name inside and could not be changed
    anyway."""
    if _ours(path):
        veil = veils.over(name, path) if veils else None
        return replace(_overlay(box, name, f"/{name}", path), veil=veil)
    return _read_only(name, path, veils)


def _ours(path: Path) -> bool:
    return path.stat().st_uid == os.geteuid()


def _read_only(name: str, path: Path, veils: Veils | None) -> Layer:
    return Layer(target=f"/{name}", lower=path, upper=None, veil=veils.over(name, path) if veils else None)


def _overlay(box: Path, name: str, target: str, lower: Path) -> Layer:
    return Layer(target=target, lower=lower, upper=box / name, work=box / f"{name}.work")


def _prepare(root: Layer, image: ImageRef, account: Account) -> None:
    """Directories that must be there, and be the sandbox user's own, whatever the image's root allows.

    Our own root has them, and they are the driver's: each that is not made again spares the disk an inode.
    """
    assert root.upper is not None
    ours = image.kind == "host"
    for name, mode in (_WORKSPACE if ours else _ALWAYS).items():
        _directory(root.upper / name, mode)
    if ours and account == ROOT:
        return
    home = posixpath.normpath(account.home).lstrip("/")
    if home and ".." not in home.split("/"):
        (root.upper / home).parent.mkdir(parents=True, exist_ok=True)
        _directory(root.upper / home, 0o700)
    if ours:
        _directory(root.upper / "etc", 0o755)
        (root.upper / "etc/passwd").write_text(account.passwd)
        (root.upper / "etc/group").write_text(account.group)


def _directory(path: Path, mode: int) -> None:
    path.mkdir(exist_ok=True)
    path.chmod(mode)
