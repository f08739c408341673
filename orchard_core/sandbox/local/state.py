"""Where sandboxes keep their files on the host, and the lease that shows whether their driver lives.

    ROOT/lock                     taken for a moment to register a driver or to claim a dead one
    ROOT/drivers/ID/lease         locked (flock) as long as the driver lives; the kernel frees it, always
    ROOT/drivers/ID/cgroups.json  cgroup directories to remove with it
    ROOT/drivers/ID/base/         the host image's own small root
    ROOT/drivers/ID/boxes/BOX/    writable layers, socket and log of one sandbox
    ROOT/drivers/ID/snapshots/S/  saved layers; they end with the driver at the latest

A lock cannot be mistaken for another process's, as a process id can.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from orchard_core.errors import SandboxUnavailable
from orchard_core.sandbox.local.scatter import scatter_below

STATE_VARIABLE = "ORCHARD_STATE_DIR"


def candidate_roots(chosen: str | None) -> list[Path]:
    """Directories to try, best first; only the chosen one when there is one."""
    named = chosen or os.environ.get(STATE_VARIABLE)
    if named:
        return [Path(named).absolute()]
    uid = os.geteuid()
    home = os.environ.get("XDG_STATE_HOME") or Path("~/.local/state").expanduser()
    return [Path(f"/var/tmp/orchard-{uid}"), Path(home) / "orchard", Path(f"/dev/shm/orchard-{uid}")]  # noqa: S108


def prepare_root(root: Path) -> None:
    """Make a state directory that no other user can look into. Raises SandboxUnavailable."""
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        info = root.lstat()
        trusted = root.is_dir() and not root.is_symlink() and info.st_uid == os.geteuid()
        if trusted:
            # A set-group-id parent would give files a group that the sandbox cannot name.
            os.chown(root, -1, os.getegid())
            root.chmod(0o700)
            (root / "drivers").mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise SandboxUnavailable(f"cannot use {root} for sandboxes: {error}", hint=_CHOOSE) from error
    if not trusted:
        raise SandboxUnavailable(f"{root} belongs to another user or is a link", hint=_CHOOSE)


_CHOOSE = f"set {STATE_VARIABLE} to a directory of your own on a local disk (ext4, xfs, btrfs or tmpfs)"


@contextmanager
def registry_lock(root: Path) -> Iterator[None]:
    """Held for moments only, by whoever adds or claims a driver's directory."""
    descriptor = os.open(root / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@dataclass(slots=True, kw_only=True)
class DriverState:
    """One live driver's directory and its lease."""

    id: str
    """Unique; also the name of its cgroups."""
    path: Path
    """ROOT/drivers/ID."""
    lease: int
    """File descriptor that holds the lock; -1 once released."""

    @property
    def base(self) -> Path:
        """The host image's small root."""
        return self.path / "base"

    def box(self, sandbox_id: str) -> Path:
        """Directory of one sandbox."""
        return self.path / "boxes" / sandbox_id

    def snapshot(self, snapshot_id: str) -> Path:
        """Directory of one snapshot."""
        return self.path / "snapshots" / snapshot_id

    def note_cgroups(self, directories: list[Path]) -> None:
        """Tell a later reaper which cgroups are this driver's; call it before they are made."""
        draft = self.path / "cgroups.json.new"
        draft.write_text(json.dumps([str(directory) for directory in directories]))
        draft.rename(self.path / "cgroups.json")

    def release(self) -> None:
        """Give the lease up; what is left of the directory becomes a reaper's business."""
        if self.lease >= 0:
            os.close(self.lease)
            self.lease = -1


def register_driver(root: Path) -> DriverState:
    """Make a directory for this driver and take its lease."""
    prepare_root(root)
    driver = f"{os.getpid()}-{secrets.token_hex(4)}"
    path = root / "drivers" / driver
    with registry_lock(root):
        (path / "boxes").mkdir(mode=0o700, parents=True)
        scatter_below(path / "boxes")
        (path / "snapshots").mkdir(mode=0o700)
        lease = os.open(path / "lease", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(lease, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return DriverState(id=driver, path=path, lease=lease)


def claim_dead(root: Path) -> Iterator[DriverState]:
    """Each dead driver's directory, its lease now ours, so that no other reaper touches it."""
    try:
        with registry_lock(root):
            paths = sorted((root / "drivers").iterdir())
            claimed = [state for path in paths if (state := _claim(path))]
    except OSError:
        return
    yield from claimed


def _claim(path: Path) -> DriverState | None:
    try:
        lease = os.open(path / "lease", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError:
        return None
    try:
        fcntl.flock(lease, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lease)
        return None
    return DriverState(id=path.name, path=path, lease=lease)
