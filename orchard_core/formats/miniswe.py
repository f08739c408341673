"""`.traj.json` of mini-swe-agent, format mini-swe-agent-1.1: one file, or a directory tree of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from orchard_core.errors import FormatUnsupported
from orchard_core.formats.conversation import Fields, conversation
from orchard_core.formats.fault import Fault
from orchard_core.formats.imported import CARRIED, carried_facts, imported_row, tool_texts
from orchard_core.formats.place import must_exist, new_directory, new_file
from orchard_core.formats.text import a_list, an_object, dumped, parsed, parsed_object
from orchard_core.formats.unpacked import head, whole
from orchard_core.types.dataset import DatasetRow
from orchard_core.types.rollout import Outcome

NAME = "miniswe"
VERSION = "mini-swe-agent-1.1"
ENDING = ".traj.json"
_MARK = b'"mini-swe-agent-'
_PER_FOLDER = 1000
_OUTCOMES = {
    "Submitted": Outcome.COMPLETED,
    "LimitsExceeded": Outcome.TRUNCATED,
    "TimeExceeded": Outcome.TIMED_OUT,
}


class MinisweFormat:
    """Its last message, of role `exit`, was said by nobody: the row keeps it beside its own."""

    name = NAME
    writes = True

    def recognises(self, path: Path) -> bool:
        """By the name's ending and the format's name in the file."""
        if path.is_dir():
            return next(_trajectories(path), None) is not None
        return path.is_file() and path.name.endswith(".json") and _is_trajectory(path)

    def read(self, path: Path) -> Iterator[DatasetRow]:
        """Every trajectory, by path. Raises DatasetNotFound and DatasetCorrupt."""
        must_exist(path)
        root = path if path.is_dir() else path.parent
        for file in _trajectories(path) if path.is_dir() else [path]:
            try:
                yield _row(parsed_object(whole(file)), str(file.relative_to(root)), file.name)
            except Fault as fault:
                raise fault.at(str(file), 0) from None

    def write(self, rows: Iterable[DatasetRow], path: Path) -> int:
        """One row to a file whose name ends with `.json`, else a directory with a file each. Raises
        DatasetExists and FormatUnsupported."""
        if path.name.endswith(".json"):
            with new_file(path) as file:
                held = [row for _, row in zip(range(2), rows, strict=False)]
                if len(held) != 1:
                    raise FormatUnsupported(
                        f"a {ENDING} holds one row, and here are {'more' if held else 'none'}",
                        hint="write to a directory: a name without an ending",
                    )
                file.write(_text(held[0]))
            return 1
        with new_directory(path) as folder:
            count = 0
            for count, row in enumerate(rows, 1):
                place = (
                    folder / f"{(count - 1) // _PER_FOLDER:05d}" / f"{(count - 1) % _PER_FOLDER:03d}{ENDING}"
                )
                place.parent.mkdir(exist_ok=True)
                place.write_bytes(_text(row))
            if not count:
                raise FormatUnsupported("there are no rows, and an empty directory is no trajectory")
            return count


def _row(document: Fields, place: str, file_name: str) -> DatasetRow:
    version = document.get("trajectory_format")
    if version != VERSION:
        raise Fault(
            f"{str(version)[:40]!r} is not {VERSION}, the only version known", field="trajectory_format"
        )
    info = an_object(document.get("info", {}), "info")
    given = [
        an_object(message, f"messages[{place}]")
        for place, message in enumerate(a_list(document.get("messages"), "messages"))
    ]
    ended = bool(given) and given[-1].get("role") == "exit"
    said = given[:-1] if ended else given
    plain = conversation([_without_extra(message) for message in said]).messages
    carried = info.get(CARRIED)
    theirs = {} if carried is not None else _theirs(document, info, file_name)
    tools = carried.pop("tools", "[]") if isinstance(carried, dict) else "[]"
    row = imported_row(plain, tools=tool_texts(tools), place=place, carried=carried, **theirs)
    note = {
        "document": {key: value for key, value in document.items() if key not in ("messages", "info")},
        "info": {key: value for key, value in info.items() if key != CARRIED},
        "messages": [_rest(message, known) for message, known in zip(said, plain, strict=True)],
        "exit": given[-1] if ended else None,
    }
    if carried is not None and note == _plain_note(row):
        return row
    return row.model_copy(update={"metadata": {**row.metadata, NAME: dumped(note)}})


def _theirs(document: Fields, info: Fields, file_name: str) -> Fields:
    """What a stock file says of its row."""
    known: Fields = {
        "harness": "miniswe",
        "task": str(document.get("instance_id") or file_name.removesuffix(ENDING)),
    }
    known["outcome"] = _OUTCOMES.get(str(info.get("exit_status")))
    config = info.get("config")
    model = config.get("model") if isinstance(config, dict) else None
    if isinstance(model, dict) and isinstance(model.get("model_name"), str):
        known["model"] = model["model_name"]
    return known


def _text(row: DatasetRow) -> bytes:
    """The file of a row: what it was read from, where it is as it was."""
    noted = row.metadata.get(NAME)
    note = parsed(noted) if isinstance(noted, str) else _plain_note(row)
    messages = parsed(row.messages)
    rests = note["messages"] if len(note["messages"]) == len(messages) else [{} for _ in messages]
    written = [_with_rest(message, rest) for message, rest in zip(messages, rests, strict=True)]
    if note["exit"] is not None:
        written.append(note["exit"])
    facts = carried_facts(row)
    metadata = {key: value for key, value in row.metadata.items() if key != NAME}
    facts = {key: value for key, value in facts.items() if key != "metadata"} | (
        {"metadata": metadata} if metadata else {}
    )
    info = note["info"]
    document = {**note["document"], "info": info, "messages": written}
    if not (isinstance(noted, str) and _unchanged(row, document, facts)):
        tools = {"tools": row.tools} if row.tools != "[]" else {}
        document["info"] = {**info, CARRIED: {**facts, **tools}}
    return json.dumps(document, indent=2).encode()


def _unchanged(row: DatasetRow, document: Fields, facts: Fields) -> bool:
    """Whether a file of somebody else's says of itself all that the row does."""
    again = carried_facts(_row(document, "", row.task + ENDING))
    free = ("id", "rollout", "split", "metadata")
    left = [{key: value for key, value in told.items() if key not in free} for told in (facts, again)]
    return left[0] == left[1] and "metadata" not in facts and row.tools == "[]" and not row.split


def _plain_note(row: DatasetRow) -> Fields:
    """What a file of a row of ours says beside the conversation."""
    status = next((name for name, outcome in _OUTCOMES.items() if outcome is row.outcome), "")
    info = {
        "exit_status": status,
        "submission": "",
        "model_stats": {"instance_cost": 0.0, "api_calls": row.turns},
    }
    return {
        "document": {"trajectory_format": VERSION},
        "info": info,
        "messages": [{} for _ in row.mask],
        "exit": {"role": "exit", "content": status, "extra": {"exit_status": status, "submission": ""}},
    }


def _without_extra(message: Fields) -> Fields:
    return {key: value for key, value in message.items() if key != "extra"}


_ABSENT = "absent"
_MEMBERS = "members"


def _rest(message: Fields, plain: Fields) -> Fields:
    """What the file's message has that the row's has not, or otherwise; `absent`: what only the row has."""
    members = {key: value for key, value in message.items() if key not in plain or plain[key] != value}
    absent = [key for key in plain if key not in message]
    return {**({_MEMBERS: members} if members else {}), **({_ABSENT: absent} if absent else {})}


def _with_rest(message: Fields, rest: Fields) -> Fields:
    """The file's message again; where the row's was changed since, the change counts."""
    if not rest:
        return message
    members = rest.get(_MEMBERS, {})
    whole_ = {key: value for key, value in {**message, **members}.items() if key not in rest.get(_ABSENT, ())}
    try:
        same = list(conversation([_without_extra(whole_)]).messages) == [message]
    except Fault:
        same = False
    return whole_ if same else {**message, **({"extra": members["extra"]} if "extra" in members else {})}


def _trajectories(folder: Path) -> Iterator[Path]:
    """By path, one directory after the other; what else lies there, such as preds.json, is passed over."""
    for found in sorted(folder.iterdir()):
        if found.name.startswith(".") or found.is_symlink():
            continue
        if found.is_dir():
            yield from _trajectories(found)
        elif found.name.endswith(ENDING):
            yield found


def _is_trajectory(file: Path) -> bool:
    start = head(file)
    if not start.lstrip().startswith(b"{"):
        return False
    if _MARK in start:
        return True
    try:
        with file.open("rb") as opened:
            opened.seek(max(0, opened.seek(0, 2) - 65536))
            return _MARK in opened.read()
    except OSError:
        return False
