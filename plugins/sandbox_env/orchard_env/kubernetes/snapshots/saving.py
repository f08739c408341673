"""Saving what changed in a sandbox, and putting it into another, through their agents."""

from __future__ import annotations

from collections.abc import AsyncIterator

from orchard_core import AgentClient, SandboxSpec, SandboxUnsupported, Snapshot
from orchard_env.kubernetes.snapshots.config import SnapshotConfig
from orchard_env.kubernetes.snapshots.record import SnapshotRecord
from orchard_env.kubernetes.snapshots.shelf import SnapshotShelf


class Filling:
    """Honours Fill. The snapshot is not removed before it has ended."""

    def __init__(self, shelf: SnapshotShelf, record: SnapshotRecord) -> None:
        self._shelf = shelf
        self._record = record
        self._ended = False
        shelf.begin_reading(record.place)

    async def into(self, client: AgentClient) -> None:
        """Raises SnapshotDamaged, DiskFull, SandboxUnavailable, SandboxGone."""
        broke: list[Exception] = []

        async def archive() -> AsyncIterator[bytes]:
            try:
                async for piece in self._shelf.read(self._record):
                    yield piece
            except Exception as error:
                broke.append(error)
                raise

        try:
            await client.apply_changes(archive())
        except Exception:
            # A body that is cut looks to the agent's client like a lost connection.
            if broke:
                raise broke[0] from None
            raise
        finally:
            self.end()

    def end(self) -> None:
        """See Fill."""
        if not self._ended:
            self._ended = True
            self._shelf.end_reading(self._record.place)


class Snapshots:
    """What a provider can do of it: nothing, where no storage is set."""

    def __init__(self, config: SnapshotConfig | None, provider: str) -> None:
        """Raises ConfigError."""
        self._shelf = None if config is None else SnapshotShelf(config, provider)

    @property
    def shelf(self) -> SnapshotShelf:
        """Where they lie. Raises SandboxUnsupported."""
        if self._shelf is None:
            raise SandboxUnsupported(
                "this provider has no storage for snapshots", hint="set its option `snapshots`"
            )
        return self._shelf

    async def save(self, client: AgentClient, spec: SandboxSpec) -> Snapshot:
        """Store what changed in a sandbox; the client is closed. Raises SandboxGone, DiskFull,
        SandboxUnavailable."""
        async with client:
            return await self.shelf.save(client.changes(), spec)

    async def fill(self, snapshot: Snapshot, spec: SandboxSpec) -> Filling:
        """What makes the saved changes in a new sandbox; to be ended. Raises SnapshotMissing,
        SandboxUnsupported, SandboxUnavailable."""
        return Filling(self.shelf, await self.shelf.find(snapshot, spec))

    async def discard(self, snapshot: Snapshot) -> None:
        """Remove it; fine when it is gone. Raises SandboxUnavailable."""
        if self._shelf is not None:
            await self._shelf.discard(snapshot)

    async def discard_own(self) -> None:
        """Remove what ends with its provider. Raises SandboxUnavailable."""
        if self._shelf is not None:
            await self._shelf.discard_own()
