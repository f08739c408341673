"""Mending a run directory after its writer died: cut torn tails, keep what is whole."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from orchard_core.rollout.store.commit import shard_path
from orchard_core.rollout.store.entry import Finished
from orchard_core.rollout.store.files import Appender, Files
from orchard_core.rollout.store.frame import Span, scan, unpack
from orchard_core.rollout.store.journal import JournalReader, encode
from orchard_core.rollout.store.state import RunState
from orchard_core.rollout.store.summary import summary

_SHARD = re.compile(r"(\d{5,})\.jsonl\.zst")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """A run directory in which every byte is accounted for."""

    state: RunState
    """What the journal says."""
    journal: Appender
    """The journal, open at the end of its last valid line."""
    shard: int
    """The shard to write next."""
    salvaged: int
    """Whole rollouts that were in a shard but not yet in the journal."""


def recover(root: Path, files: Files) -> Recovered:
    """Mend the directory; the caller holds its lock. Doing it again changes nothing."""
    reader = JournalReader(root / "journal.jsonl")
    state = RunState.replay(reader.entries())
    journal = files.append(root / "journal.jsonl")
    files.sync_dir(root)
    if journal.size > reader.valid_bytes:
        journal.truncate(reader.valid_bytes)
        journal.sync()
    numbers = shard_numbers(root)
    last = numbers[-1] if numbers else 0
    salvaged = _mend_shards(root, files, journal, state, numbers)
    return Recovered(state=state, journal=journal, shard=last, salvaged=salvaged)


def shard_numbers(root: Path) -> list[int]:
    """The shards there are, in order."""
    names = [_SHARD.fullmatch(path.name) for path in (root / "shards").iterdir()]
    return sorted(int(match[1]) for match in names if match)


def _mend_shards(root: Path, files: Files, journal: Appender, state: RunState, numbers: list[int]) -> int:
    known = dict(state.ends)
    return sum(
        _mend_shard(shard_path(root, number), number, known.get(number, 0), files, journal, state)
        for number in numbers
    )


def _mend_shard(path: Path, number: int, start: int, files: Files, journal: Appender, state: RunState) -> int:
    if path.stat().st_size <= start:
        return 0
    spans = list(scan(path, start))
    end = spans[-1].offset + spans[-1].length if spans else start
    shard = files.append(path)
    try:
        shard.truncate(end)
        shard.sync()  # what is salvaged may never have reached the disk
    finally:
        shard.close()
    entries = [entry for span in spans if (entry := _entry(path, number, span)).id in state.planned]
    if entries:
        journal.write(b"".join(encode(entry) for entry in entries))
        journal.sync()
    for entry in entries:
        state.apply(entry)
    return len(entries)


def _entry(path: Path, number: int, span: Span) -> Finished:
    with path.open("rb") as stream:
        stream.seek(span.offset)
        rollout = unpack(stream.read(span.length), where=f"{path.name} at {span.offset}")
    return summary(rollout).model_copy(update={"shard": number, "offset": span.offset, "length": span.length})
