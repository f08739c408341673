"""The `openhands` format: read only."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NoReturn

from orchard_core.errors import FormatUnsupported
from orchard_core.formats.conversation import Fields
from orchard_core.formats.fault import Fault
from orchard_core.formats.imported import imported_row
from orchard_core.formats.limits import MIB, ROW_BYTES
from orchard_core.formats.openhands.events import told
from orchard_core.formats.openhands.example import EVENTS
from orchard_core.formats.place import must_exist
from orchard_core.formats.text import dumped, parsed_object
from orchard_core.formats.unpacked import head, lines, whole
from orchard_core.types.dataset import DatasetRow

NAME = "openhands"
_STATE = "base_state.json"
_LINES = ("events.jsonl", "events.jsonl.gz", "events.jsonl.zst")


class OpenHandsFormat:
    """A conversation's directory (`events/event-*.json`), a file of one event a line, or a tree of either."""

    name = NAME
    writes = False

    def recognises(self, path: Path) -> bool:
        """By its events' members."""
        if path.is_dir():
            return next(_conversations(path), None) is not None
        return path.is_file() and path.name.endswith((".jsonl", ".jsonl.gz", ".jsonl.zst")) and _is_log(path)

    def read(self, path: Path) -> Iterator[DatasetRow]:
        """One row a conversation, by path. Raises DatasetNotFound and DatasetCorrupt."""
        must_exist(path)
        root = path if path.is_dir() else path.parent
        for log in _conversations(path) if path.is_dir() else [path]:
            yield _row(log, str(log.relative_to(root)))

    def write(self, rows: Iterable[DatasetRow], path: Path) -> NoReturn:
        """Raises FormatUnsupported."""
        raise FormatUnsupported(
            "event logs of OpenHands are only read", hint="write atif, hf, orchard-swe or miniswe"
        )

    def example(self, into: Path) -> Path:
        """A small log of our own making."""
        log = into / "events.jsonl"
        log.write_text("".join(json.dumps(event) + "\n" for event in EVENTS), encoding="utf-8")
        return log


def _row(log: Path, place: str) -> DatasetRow:
    events = _events(log)
    try:
        made = told(events)
        state = _state(log)
        return imported_row(
            made.messages,
            tools=dumped(made.tools),
            place=place,
            harness=NAME,
            **state,
            metadata={NAME: {"events": len(events), "condensed": made.condensed}},
        )
    except Fault as fault:
        raise fault.at(str(log), 0) from None


def _events(log: Path) -> list[Fields]:
    events: list[Fields] = []
    size = 0
    for file in sorted((log / "events").glob("event-*.json")) if log.is_dir() else [log]:
        try:
            for text in [whole(file)] if log.is_dir() else lines(file):
                size += len(text)
                if size > ROW_BYTES:
                    raise Fault(f"this conversation has more than {ROW_BYTES // MIB} MiB")
                events.append(parsed_object(text, field=f"events[{len(events)}]"))
        except Fault as fault:
            raise fault.at(str(file), 0) from None
    return events


def _state(log: Path) -> Fields:
    """The model, where the conversation's state lies beside its events."""
    file = (log if log.is_dir() else log.parent) / _STATE
    if not file.is_file():
        return {}
    try:
        state = parsed_object(whole(file))
    except Fault as fault:
        raise fault.at(str(file), None) from None
    agent = state.get("agent")
    model = agent.get("llm", {}) if isinstance(agent, dict) else {}
    name = model.get("model") if isinstance(model, dict) else None
    return {"model": name} if isinstance(name, str) else {}


def _conversations(folder: Path) -> Iterator[Path]:
    """Directories with an `events` folder and files of events, by path."""
    if any((folder / "events").glob("event-*.json")):
        yield folder
        return
    for found in sorted(folder.iterdir()):
        if found.name.startswith(".") or found.is_symlink():
            continue
        if found.is_dir():
            yield from _conversations(found)
        elif found.name in _LINES and _is_log(found):
            yield found


def _is_log(file: Path) -> bool:
    if not head(file, 64).lstrip().startswith(b"{"):
        return False
    try:
        first = parsed_object(next(lines(file), b""))
    except (Fault, OSError):
        return False
    return {"id", "timestamp", "source", "kind"} <= set(first)
