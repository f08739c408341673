"""Rows of the `hf` format read: whatever shape they are in."""

from __future__ import annotations

from typing import Any

from orchard_core.formats.conversation import Conversation, conversation
from orchard_core.formats.fault import Fault
from orchard_core.formats.imported import CARRIED, imported_row, tool_texts
from orchard_core.formats.records import Found
from orchard_core.formats.text import a_list, a_text, dumped, parsed
from orchard_core.types.dataset import DatasetRow

NOTE = "hf"
"""Where a row's metadata says how the file held it."""

_OURS = {"messages", "tools", "mask", "weights", "prompt", "completion", "input_ids", "labels", CARRIED}


def hf_row(found: Found, told: Conversation | None = None) -> DatasetRow:
    """A row of a record; `told` is its member `messages`, where that was looked at already. Raises Fault."""
    fields = found.fields
    split = "prompt" in fields and "completion" in fields and "messages" not in fields
    text = ""
    if split:
        prompt = conversation(_listed(fields["prompt"], "prompt"), "prompt", filled=found.filled)
        completion = conversation(
            _listed(fields["completion"], "completion"), "completion", filled=found.filled
        )
        messages = [*prompt.messages, *completion.messages]
        objects = prompt.objects or completion.objects
        trained = range(len(prompt.messages), len(messages))
    else:
        if "messages" not in fields:
            raise Fault("there is none", field="messages")
        told = told or conversation(_listed(fields["messages"], "messages"), filled=found.filled)
        messages, objects, trained = list(told.messages), told.objects, range(len(told.messages))
        text = told.text
    known: dict[str, Any] = {}
    if split:
        known["mask"] = [
            int(place in trained and message["role"] == "assistant") for place, message in enumerate(messages)
        ]
    for name in ("mask", "weights"):
        if fields.get(name) is not None:
            known[name] = a_list(fields[name], name)
    if set(known.get("weights", ())) == {1.0}:
        del known["weights"]  # it says as much as none
    row = imported_row(
        messages,
        text=text,
        tools=tool_texts(fields.get("tools"), filled=found.filled),
        place=found.place,
        carried=fields.get(CARRIED),
        **known,
    )
    changes: dict[str, Any] = {}
    if found.split and CARRIED not in fields:
        changes["split"] = found.split
    note = _note(found, objects=objects)
    if note:
        changes["metadata"] = {**row.metadata, NOTE: note}
    return row.model_copy(update=changes) if changes else row


def _note(found: Found, *, objects: bool) -> dict[str, str]:
    """How the file held the row, where that is not how it would be written."""
    note = {}
    if objects and not found.filled:
        note["arguments"] = "object"
    if isinstance(found.fields.get("tools"), list) and not found.filled:
        note["tools"] = "list"
    others = {key: value for key, value in found.fields.items() if key not in _OURS and value is not None}
    if others:
        note["columns"] = dumped(_plain(others))
    return note


def _plain(value: Any) -> Any:
    """Values that JSON has: bytes and dates of Parquet as texts."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, bytes):
        return value.hex()
    return str(value)


def _listed(value: Any, field: str) -> Any:
    """Messages that are a JSON text, or whose items are, as lists of objects."""
    if isinstance(value, str):
        return parsed(value, field=field)
    if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
        return [parsed(a_text(item, field), field=f"{field}[{place}]") for place, item in enumerate(value)]
    return value
