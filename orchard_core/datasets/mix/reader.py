"""The loop over one source: its filters asked, its credit put on, its rows spooled chunk by chunk."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from io import FileIO
from typing import Any

from orchard_core.datasets.mix.actions import parsed
from orchard_core.datasets.mix.crediting import Crediting
from orchard_core.datasets.mix.filters import Drop
from orchard_core.datasets.mix.index import Dropped, Index, Kept, KnownTask, State
from orchard_core.datasets.mix.leaking import Leaking
from orchard_core.datasets.mix.lines import BadRow, ReadRow
from orchard_core.datasets.mix.reading import rows_of
from orchard_core.datasets.mix.row_filters import RowFilters, Verdict
from orchard_core.datasets.mix.scan import Scan
from orchard_core.datasets.mix.spool import Frame, framed
from orchard_core.datasets.mix.where import outcome_of
from orchard_core.errors import DatasetCorrupt, DatasetError, StoreError
from orchard_core.types.dataset import DatasetRow, task_digest

Messages = Sequence[Mapping[str, Any]]
HELD_BYTES = 16 << 20
"""Bytes of frames that are held between two commits."""
CHUNK_BYTES = 64 << 20
"""Bytes of rows between two commits: what a kill loses."""
CHUNK_ROWS = 2_000
_PARTS = 1_000
"""Rows between two commits."""


@dataclass(slots=True)
class _Chunk:
    """What was read and is not yet committed."""

    frames: list[bytes] = field(default_factory=list)
    kept: list[Kept] = field(default_factory=list)
    tasks: dict[tuple[str, str], KnownTask] = field(default_factory=dict)
    dropped: list[Dropped] = field(default_factory=list)
    held: int = 0
    size: int = 0

    @property
    def full(self) -> bool:
        rows = len(self.kept) + len(self.dropped)
        return self.held >= HELD_BYTES or self.size >= CHUNK_BYTES or rows >= CHUNK_ROWS


class Reader:
    """Reads a source from where an earlier start left off."""

    def __init__(
        self, job: Scan, index: Index, spool: FileIO, state: State, tell: Callable[[int, int], None]
    ) -> None:
        self._job = job
        self._index = index
        self._spool = spool
        self._before = state
        self._tell = tell
        self._read, self._passed, self._spooled = 0, state.passed, state.spooled
        self._digest = ""
        self._size = 0
        self._chunk = _Chunk()
        self._filters = RowFilters(job.source.where, job.recipe.filters)
        self._credit = Crediting(job.source)
        self._leaks = Leaking(job.recipe.leaks) if job.recipe.leaks.against else None
        self._near = job.recipe.filters.near_duplicates is not None
        self._skip = job.recipe.on_bad_row == "skip"

    def run(self) -> State:
        """Read to the end, or until `max_rows` passed. Raises DatasetError when the rows that were read
        before are others now."""
        most = self._job.source.max_rows
        for found in rows_of(self._job.source, skip_bad=self._skip):
            if self._read < self._before.read:
                self._pass_over(found)
                continue
            if most is not None and self._passed >= most:
                break
            if isinstance(found, BadRow):
                self._drop(found.id, Verdict(drop=Drop.BAD_ROW, why=found.why), b"")
            else:
                self._take(found)
            if self._chunk.full:
                self._commit()
        if self._read < self._before.read:
            raise self._changed()
        return self._commit()

    def _pass_over(self, found: ReadRow | BadRow) -> None:
        """A row of an earlier start: only looked at to be sure that it is the same."""
        if isinstance(found, BadRow):
            self._count(found.id, b"")
        else:
            self._size += len(found.row.messages)
            self._count(found.row.id, content_of(found.row, found.text or encoded(found.row)))
        if self._read == self._before.read and self._digest != self._before.digest:
            raise self._changed()

    def _changed(self) -> DatasetError:
        return DatasetError(
            f"{self._job.source.path} gives other rows than when this mix began", hint=self._job.mend
        )

    def _count(self, name: str, content: bytes) -> None:
        """One more row, into the digest of what was read."""
        told = b"\0".join((self._digest.encode(), content, name.encode("utf-8", "surrogatepass")))
        self._digest = hashlib.sha256(told).hexdigest()
        self._read += 1

    def _take(self, found: ReadRow) -> None:
        """Keep it, or drop it. Raises DatasetCorrupt."""
        row, text = found.row, found.text or encoded(found.row)
        content = content_of(row, text)
        self._size += len(row.messages)
        try:
            messages = found.messages or parsed(row.messages, field="messages", path=row.id)
            row, verdict = self._judged(row, messages)
        except DatasetCorrupt as error:
            if not self._skip:
                raise self._placed(error, row) from None
            verdict = Verdict(drop=Drop.BAD_ROW, why=error.message)
        if verdict is not None:
            self._drop(row.id, verdict, content)
        else:
            row.__dict__["source"] = self._job.source.name  # a copy of each row costs more than all filters
            self._keep(row, framed(row, text, found.place), content, self._signature(messages))

    def _judged(self, row: DatasetRow, messages: Messages) -> tuple[DatasetRow, Verdict | None]:
        verdict = self._filters(row, messages) or (self._leaks(row) if self._leaks else None)
        if verdict is None:
            row, verdict = self._credit(row)
        return row, verdict or self._filters.untrained(row)

    def _placed(self, error: DatasetCorrupt, row: DatasetRow) -> DatasetCorrupt:
        """The fault of a row that was read, with where it stands."""
        said = error.message.partition(": ")[2]
        return DatasetCorrupt(
            f"{said} (row id {row.id})", path=self._job.source.path, row=self._read, field=error.field,
            hint="mend the row, or leave such rows out with on_bad_row: skip",
        )  # fmt: skip

    def _drop(self, name: str, verdict: Verdict, content: bytes) -> None:
        told = Dropped(reason=verdict.drop.value, ord=self._read, id=name, why=verdict.why)
        self._chunk.dropped.append(told)
        self._count(name, content)

    def _keep(self, row: DatasetRow, frame: Frame, content: bytes, signature: bytes) -> None:
        chunk, task = self._chunk, known_task(row)
        chunk.kept.append(
            Kept(
                ord=self._read, id=row.id, content=content, offset=self._spooled, length=frame.length,
                size=frame.size, tokens=row.token_count, turns=row.turns, harness=row.harness,
                model=row.model, taskset=row.taskset, name=task.name, outcome=outcome_of(row),
                signature=signature,
            )
        )  # fmt: skip
        chunk.tasks.setdefault((task.taskset, task.name), task)
        chunk.size += frame.size
        if self._job.keep:
            chunk.frames += frame.parts
            chunk.held += frame.length
            self._spooled += frame.length
        self._passed += 1
        self._count(row.id, content)

    def _signature(self, messages: Messages) -> bytes:
        if not self._near:
            return b""
        from orchard_core.datasets.similar.actions import action_signature

        return action_signature(messages)

    def _commit(self) -> State:
        chunk, self._chunk = self._chunk, _Chunk()
        if chunk.frames:
            self._append(chunk.frames)
        state = replace(
            self._before, read=self._read, passed=self._passed, spooled=self._spooled, digest=self._digest
        )
        self._index.add(chunk.kept, chunk.tasks.values(), chunk.dropped, state)
        self._tell(self._read, self._size)
        return state

    def _append(self, frames: Sequence[bytes]) -> None:
        try:
            for start in range(0, len(frames), _PARTS):
                parts = frames[start : start + _PARTS]
                written = os.writev(self._spool.fileno(), parts)
                if written < sum(map(len, parts)):  # the disk is nearly full, or the kernel took a pause
                    rest = memoryview(b"".join(parts))[written:]
                    while rest:
                        rest = rest[self._spool.write(rest) or 0 :]
        except OSError as error:
            raise StoreError(
                f"{self._job.spool} cannot be written: {error.strerror}",
                hint="make room on the disk and run the command again: it goes on",
            ) from error


def encoded(row: DatasetRow) -> bytes:
    """A row's messages; a lone surrogate, which JSON texts of ours never hold bare, is let through."""
    return row.messages.encode("utf-8", "surrogatepass")


def content_of(row: DatasetRow, text: bytes) -> bytes:
    """Digest of what a model is shown: messages, whose encoding is `text`, and tools."""
    digest = hashlib.sha256(text)
    digest.update(b"\0")
    digest.update(row.tools.encode("utf-8", "surrogatepass"))
    return digest.digest()[:16]


def known_task(row: DatasetRow) -> KnownTask:
    """The row's task; one without an id goes by its text."""
    name = row.task or "\0" + hashlib.sha256(row.task_text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return KnownTask(
        taskset=row.taskset, name=name, task=row.task, text=row.task_text,
        digest=task_digest(row.provenance),
    )  # fmt: skip
