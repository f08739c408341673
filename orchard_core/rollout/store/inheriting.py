"""What another journal knows already, seen by the writer of a part of the same run."""

from __future__ import annotations

from collections.abc import Container, Iterable
from pathlib import Path

from orchard_core.rollout.store.entry import Dropped, Entry, Finished, Planned
from orchard_core.rollout.store.journal import JournalReader
from orchard_core.rollout.store.state import RunState


def key(entry: Entry) -> str:
    """The same for an entry and its copy in another journal, wherever the record lies."""
    if isinstance(entry, Finished):
        entry = entry.model_copy(update={"shard": 0, "offset": 0, "length": 0})
    return entry.model_dump_json()


def entries_of(root: Path) -> list[Entry]:
    """Every entry of a run's journal, in order; none where there is no journal."""
    return list(JournalReader(root / "journal.jsonl").entries())


def joined(whole: Iterable[Entry], own: Iterable[Entry], tasks: Container[str]) -> RunState:
    """The state of a part: what the whole run's journal says of its tasks, then what its own adds to that."""
    state, known, mine = RunState(), set[str](), set[str]()
    for entry in whole:
        if isinstance(entry, Planned) and entry.task in tasks:
            mine.add(entry.id)
        if entry.task in tasks if isinstance(entry, Dropped) else entry.id in mine:
            state.apply(entry)
            known.add(key(entry))
    for entry in own:
        if key(entry) not in known:
            state.apply(entry)
    return state
