"""What workers finish comes into the run they work on: each entry once, in order, durable before told."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from orchard_core.errors import RecordCorrupt, StoreError
from orchard_core.rollout.store.blobs import BlobReader
from orchard_core.rollout.store.commit import shard_path
from orchard_core.rollout.store.entry import Entry, Finished, Planned, Retried, Started
from orchard_core.rollout.store.frame import unpack
from orchard_core.rollout.store.inheriting import entries_of, key
from orchard_core.rollout.store.writer import RunWriter
from orchard_core.rollout.workers.tail import JournalTail
from orchard_core.types.events import Event, RolloutFinished, RolloutStarted
from orchard_core.types.rollout import Rollout

_log = logging.getLogger(__name__)
_TOGETHER = 32
"""Entries that share a sync of the disk."""
_LOOKS, _PAUSE_S = 3, 0.5
"""A network file system may show a journal's line a moment before the file that it speaks of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    entry: Entry
    frame: bytes | None
    """Of a finished one: its record."""


class Collector:
    """Reads the journals of a run's workers while they are written, and copies what is new into the run."""

    def __init__(self, writer: RunWriter, *, emit: Callable[[Event], None]) -> None:
        """Entries that the run has already are passed over, so that a collection may be cut at any moment."""
        self._writer = writer
        self._emit = emit
        self._known = {key(entry) for entry in entries_of(writer.root)}
        self._tails: dict[Path, JournalTail] = {}
        self.damaged: set[Path] = set()
        """Parts with a record that cannot be read: it counts as not run, and is not in the run."""

    async def collect(self, parts: Sequence[Path]) -> None:
        """Take over what is new in these run directories. Raises StoreError when the disk fails."""
        for part in parts:
            tail = self._tails.setdefault(part, JournalTail(part / "journal.jsonl"))
            try:
                entries = await asyncio.to_thread(tail.new)
            except OSError as error:
                raise _unreadable(part, error) from error
            wanted = [entry for entry in entries if self._is_new(entry)]
            for begin in range(0, len(wanted), _TOGETHER):
                await self._take(part, wanted[begin : begin + _TOGETHER])

    def forget(self, part: Path) -> None:
        """Another worker will begin there anew."""
        self._tails.pop(part, None)

    def _is_new(self, entry: Entry) -> bool:
        if isinstance(entry, Planned) and entry.id in self._writer.state.planned:
            return False
        if isinstance(entry, Finished) and entry.id in self._writer.state.finished:
            # Two parts can hold one rollout where locks do not hold, as on some network file systems.
            return entry.tries > self._writer.state.finished[entry.id].tries
        return key(entry) not in self._known

    async def _take(self, part: Path, entries: Sequence[Entry]) -> None:
        found = [one for entry in entries if (one := await self._fetch(part, entry)) is not None]
        # What is handed over together is written in this order, and shares the syncs.
        taken = await asyncio.gather(*(self._writer.take(one.entry, one.frame) for one in found))
        for written in taken:
            self._known.add(key(written))
            self._tell(written)

    async def _fetch(self, part: Path, entry: Entry) -> _Found | None:
        """The entry with its record, whose blobs are in the run by then; None when that cannot be had."""
        if not isinstance(entry, Finished):
            return _Found(entry=entry, frame=None)
        for look in range(_LOOKS):
            try:
                return _Found(entry=entry, frame=await asyncio.to_thread(self._record, part, entry))
            except RecordCorrupt as error:
                fault = error
            if look + 1 < _LOOKS:
                await asyncio.sleep(_PAUSE_S)
        _log.warning("%s; the rollout counts as not run, and %s is kept", fault.message, part)
        self.damaged.add(part)
        return None

    def _record(self, part: Path, entry: Finished) -> bytes:
        frame, rollout = _frame(part, entry)
        blobs = BlobReader(part / "blobs")
        for artifact in rollout.artifacts:
            try:
                self._writer.blobs.link(blobs.path(artifact.sha256), artifact.sha256)
            except FileNotFoundError:
                raise RecordCorrupt(
                    f"blob {artifact.sha256} of rollout {rollout.id} is not in {part}", hint="copy it back"
                ) from None
            except OSError as error:
                raise StoreError(
                    f"{self._writer.root} can no longer be written: {error}",
                    hint="mend the disk (space, quota, permissions), then run the same command with --resume",
                ) from error
        return frame

    def _tell(self, entry: Entry) -> None:
        planned = self._writer.state.planned.get(getattr(entry, "id", ""))
        if planned is None:
            return
        now = time.time()
        if isinstance(entry, Started):
            self._emit(
                RolloutStarted(rollout=entry.id, task=planned.task, attempt=planned.attempt, at=entry.at)
            )
        elif isinstance(entry, Finished | Retried):
            again = isinstance(entry, Retried)
            spent = entry.spent
            self._emit(
                RolloutFinished(
                    rollout=entry.id, task=planned.task, attempt=planned.attempt, outcome=entry.outcome,
                    attribution=entry.attribution, score=None if isinstance(entry, Retried) else entry.score,
                    usage=spent.usage, cost_usd=spent.cost_usd, will_retry=again, at=now,
                )
            )  # fmt: skip


def _frame(part: Path, entry: Finished) -> tuple[bytes, Rollout]:
    path = shard_path(part, entry.shard)
    where = f"{path} at byte {entry.offset} (rollout {entry.id})"
    try:
        with path.open("rb") as stream:
            stream.seek(entry.offset)
            frame = stream.read(entry.length)
    except OSError as error:
        raise RecordCorrupt(f"{where} cannot be read: {error.strerror}", hint="copy it back") from error
    rollout = unpack(frame, where=where)
    if rollout.id != entry.id:
        raise RecordCorrupt(f"{where} is the record of {rollout.id}", hint="copy the shard back")
    return frame, rollout


def _unreadable(part: Path, error: OSError) -> StoreError:
    return StoreError(
        f"{part} of a worker cannot be read: {error}", hint="mend the disk, then run again with --resume"
    )
