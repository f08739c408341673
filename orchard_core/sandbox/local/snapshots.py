"""The snapshots of one driver: copies of sandboxes' writable layers, which nobody writes to.

They lie in the driver's state directory, so that they end with it: discarded, closed with the provider, or
reaped when the driver was killed.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from orchard_core.errors import SandboxUnsupported, SnapshotMissing
from orchard_core.sandbox.local.account import Account
from orchard_core.sandbox.local.box import Fill
from orchard_core.sandbox.local.cloning import Cloned, Cloning
from orchard_core.sandbox.local.host import LocalHost
from orchard_core.sandbox.local.removal import remove_tree
from orchard_core.sandbox.unbroken import unbroken
from orchard_core.types.sandbox import ImageRef, SandboxSpec, Snapshot

Save = Callable[[Path], Awaitable[Cloned]]
"""Copies a sandbox's writable layers into an empty directory."""


@dataclass(slots=True, kw_only=True)
class Saved:
    """One snapshot as it lies here."""

    snapshot: Snapshot
    """Its name outside."""
    path: Path
    """A directory with one directory for each writable layer."""
    image: ImageRef
    """The layers make sense above this image only."""
    account: Account
    """The files are this user's, and /etc/passwd names it."""
    readers: int = 0
    """Copies being made from it."""
    unread: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the last of them ends."""

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Keep it from being removed."""
        self.readers += 1
        self.unread.clear()
        try:
            yield
        finally:
            self.readers -= 1
            if not self.readers:
                self.unread.set()


class SnapshotShelf:
    """Where the snapshots are. One event loop at a time."""

    def __init__(self, host: LocalHost, provider: str) -> None:
        self._host = host
        self._provider = provider
        self._saved: dict[str, Saved] = {}

    async def save(self, save: Save, image: ImageRef, account: Account) -> Saved:
        """Take one. When that fails, or is cancelled, nothing is left. Raises as `save`."""
        name = f"snapshot-{secrets.token_hex(6)}"
        path = self._host.state.snapshot(name)
        path.mkdir(mode=0o700)
        try:
            made = await save(path)
        except BaseException:
            await unbroken(asyncio.to_thread(remove_tree, path))
            raise
        snapshot = Snapshot(id=name, provider=self._provider, size=made.bytes)
        self._saved[name] = Saved(snapshot=snapshot, path=path, image=image, account=account)
        return self._saved[name]

    def find(self, snapshot: Snapshot, spec: SandboxSpec, account: Account) -> Saved:
        """The one to be restored by a spec. Raises SnapshotMissing, SandboxUnsupported."""
        if snapshot.provider != self._provider:
            raise SandboxUnsupported(
                f"the snapshot {snapshot.id} is the provider {snapshot.provider}'s, not {self._provider}'s",
                hint="restore it with the provider that saved it",
            )
        saved = self._saved.get(snapshot.id)
        if saved is None:
            raise SnapshotMissing(
                f"the provider {self._provider} has no snapshot {snapshot.id}",
                hint="it was discarded, or another process saved it: a snapshot ends with its provider",
            )
        for what, now, then in (("image", spec.image, saved.image), ("user", account, saved.account)):
            if now != then:
                raise SandboxUnsupported(
                    f"the snapshot {snapshot.id} was saved under another {what}: {_name(then)}",
                    hint=f"give the {what} it was saved under; all else in the spec may differ",
                )
        return saved

    def fill(self, saved: Saved, disk_bytes: int | None, *, take: bool) -> Fill:
        """How a sandbox that may hold so many bytes gets the saved files: by a copy, or, to `take` them, as
        they are. Raises SandboxUnsupported when they are more."""
        if disk_bytes is not None and saved.snapshot.size > disk_bytes:
            raise SandboxUnsupported(
                f"the snapshot {saved.snapshot.id} takes {saved.snapshot.size >> 20} MiB of disk, more than "
                f"the limit of {disk_bytes >> 20} MiB",
                hint="give a larger disk_mb",
            )
        return lambda layers: self._move(saved, layers) if take else self._copy(saved, layers)

    async def _copy(self, saved: Saved, layers: list[Path]) -> None:
        """Raises DiskFull, SandboxError."""
        with saved.reading():
            host = self._host
            cloning = Cloning(host.bwrap, host.agent, host.state.path)
            await cloning.run([(saved.path / layer.name, layer) for layer in layers])

    async def _move(self, saved: Saved, layers: list[Path]) -> None:
        for layer in layers:
            (saved.path / layer.name).rename(layer)

    async def discard(self, name: str) -> None:
        """Remove one, when the copies being made from it are done; fine when it is gone."""
        saved = self._saved.pop(name, None)
        if saved is None:
            return
        if saved.readers:
            await saved.unread.wait()
        await asyncio.to_thread(remove_tree, saved.path)


def _name(value: ImageRef | Account) -> str:
    return value.name if isinstance(value, Account) else str(value)
