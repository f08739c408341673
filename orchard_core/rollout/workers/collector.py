"""What workers finish comes into the run they work on: each entry once, in order, durable before told."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from orchard_core.errors import RecordCorrupt
from orchard_core.rollout.store.blobs import BlobReader
from orchard_core.rollout.store.commit import shard_path
from orchard_core.rollout.store.entry import Entry, Finished, Planned, Retried, Started
from orchard_core.rollout.store.frame import unpack
from orchard_core.rollout.store.inheriting import entries_of, key
from orchard_core.rollout.store.journal import decode
from orchard_core.rollout.store.writer import RunWriter
from orchard_core.types.events import Event, RolloutFinished, RolloutStarted
from orchard_core.types.rollout import Rollout


class Collector:
    """Reads the journals of a run's workers while they are written, and copies what is new into the run."""

    def __init__(self, writer: RunWriter, *, emit: Callable[[Event], None]) -> None:
        """Entries that the run has already are passed over, so that a collection may be cut at any moment."""
        self._writer = writer
        self._emit = emit
        self._known = {key(entry) for entry in entries_of(writer.root)}
        self._read: dict[Path, int] = {}

    async def collect(self, parts: Sequence[Path]) -> list[Finished]:
        """Take over what is new in these run directories. What was finished, as the run now has it. Raises
        RecordCorrupt, StoreError."""
        finished: list[Finished] = []
        for part in parts:
            for entry in await asyncio.to_thread(self._new, part):
                taken = await self._take(entry, part)
                if isinstance(taken, Finished):
                    finished.append(taken)
        return finished

    def forget(self, part: Path) -> None:
        """Another worker will begin there anew."""
        self._read.pop(part, None)

    def _new(self, part: Path) -> list[Entry]:
        """Whole lines since the last look; a torn one is looked at again."""
        try:
            with (part / "journal.jsonl").open("rb") as stream:
                begin = self._read.get(part, 0)
                stream.seek(begin)
                text = stream.read()
        except FileNotFoundError:
            return []
        whole = text[: text.rfind(b"\n") + 1]
        self._read[part] = begin + len(whole)
        entries = [decode(line) for line in whole.splitlines()]
        return [entry for entry in entries if entry is not None and key(entry) not in self._known]

    async def _take(self, entry: Entry, part: Path) -> Entry | None:
        if isinstance(entry, Planned) and entry.id in self._writer.state.planned:
            return None
        frame: bytes | None = None
        if isinstance(entry, Finished):
            frame, rollout = await asyncio.to_thread(_frame, part, entry)
            await asyncio.to_thread(self._link, part, rollout)
        taken = await self._writer.take(entry, frame)
        self._known.add(key(entry))
        self._tell(taken)
        return taken

    def _link(self, part: Path, rollout: Rollout) -> None:
        blobs = BlobReader(part / "blobs")
        for artifact in rollout.artifacts:
            try:
                self._writer.blobs.link(blobs.path(artifact.sha256), artifact.sha256)
            except FileNotFoundError:
                raise RecordCorrupt(
                    f"blob {artifact.sha256} of rollout {rollout.id} is not in {part}", hint="copy it back"
                ) from None

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
    with path.open("rb") as stream:
        stream.seek(entry.offset)
        frame = stream.read(entry.length)
    return frame, unpack(frame, where=f"{path} at byte {entry.offset} (rollout {entry.id})")
