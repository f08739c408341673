"""Writing the files of a plan: each depends on the plan alone, so that any process may write any of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from orchard_core.datasets.mix.plan import PLAN, Plan, PlannedShard
from orchard_core.datasets.mix.recipe import MixRecipe
from orchard_core.datasets.mix.scan import Scan
from orchard_core.datasets.mix.spool import Spool, SpooledRow
from orchard_core.datasets.store.partial import Whole
from orchard_core.errors import StoreError
from orchard_core.types.dataset import DatasetRow

GROUP_BYTES = 8 << 20
"""Bytes of a row group before compression: what is held, and what reading one row costs."""
GROUP_ROWS = 1_024
"""Rows of a row group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardJob:
    """One file to write."""

    shard: PlannedShard
    """Which."""
    path: Path
    """Where."""
    work: Path
    """The mix's work directory."""
    recipe: MixRecipe
    """For the names of the splits."""


def write_shard(job: ShardJob, tell: Callable[[int, int], None]) -> Whole:
    """Write it under another name, sync and rename. Raises StoreError, FormatUnsupported, DatasetCorrupt,
    DatasetError."""
    from orchard_core.datasets.store.arrow import FAULTS
    from orchard_core.datasets.store.pack import pack
    from orchard_core.datasets.store.shard import ShardFile

    tokens = turns = trained = 0
    try:
        out = ShardFile(job.path)
        try:
            for rows, messages in _groups(job):
                out.write(pack(rows, messages=messages))
                tokens += sum(row.token_count for row in rows)
                turns += sum(row.turns for row in rows)
                trained += sum(sum(map(bool, row.mask)) for row in rows)
                tell(out.rows, out.bytes)
            digest = out.commit()
        except BaseException:
            out.drop()
            raise
    except FAULTS as error:
        raise StoreError(
            f"{job.path} cannot be written: {str(error)[:300]}",
            hint="make room on the disk and run the command again: it goes on",
        ) from error
    return Whole(
        split=job.shard.split, number=job.shard.place, rows=out.rows, bytes=out.bytes, sha256=digest,
        tokens=tokens, turns=turns, trained_turns=trained,
    )  # fmt: skip


def _groups(job: ShardJob) -> Iterator[tuple[list[DatasetRow], list[bytes]]]:
    """Rows, and their messages."""
    from orchard_core.datasets.store.pack import weight

    rows: list[DatasetRow] = []
    messages: list[bytes] = []
    size = 0
    for row, told in _rows(job):
        size += weight(row) + len(told)
        rows.append(row)
        messages.append(told)
        if size >= GROUP_BYTES or len(rows) >= GROUP_ROWS:
            yield rows, messages
            rows, messages, size = [], [], 0
    if rows:
        yield rows, messages


def _rows(job: ShardJob) -> Iterator[SpooledRow]:
    """The shard's rows, in order; at the end it is certain that their sources were not changed."""
    spools: dict[int, Spool] = {}
    with ExitStack() as stack:
        for planned in Plan(job.work / PLAN, job.recipe).rows(job.shard.number):
            if planned.source not in spools:
                source = job.recipe.sources[planned.source]
                read = Scan(number=planned.source, source=source, recipe=job.recipe, work=job.work)
                spools[planned.source] = Spool(read)
                stack.callback(spools[planned.source].close)
            found = spools[planned.source].row(planned.offset, planned.length)
            found.row.__dict__.update(id=planned.name, split=job.shard.split)
            yield found
        for spool in spools.values():
            spool.check()
