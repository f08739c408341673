"""Rows made of what a file holds, and what a row says beside its conversation, to travel in a file."""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from pydantic import ValidationError

from orchard_core.formats.conversation import Fields, content_text, without_nulls
from orchard_core.formats.estimate import estimate_tokens
from orchard_core.formats.fault import Fault
from orchard_core.formats.text import an_object, bounded, dumped, parsed, parsed_object
from orchard_core.types.dataset import DATASET_VERSION, DatasetRow

CARRIED = "orchard"
"""The key under which files of other formats carry what only we know."""


def imported_row(
    messages: Sequence[Fields],
    *,
    text: str = "",
    tools: str = "[]",
    place: str,
    carried: Any = None,
    **fields: Any,
) -> DatasetRow:
    """A row of messages, whose JSON text is `text` where that was made already. `place` is where in the file
    it stands, without the directory; `carried` is what `carried_facts` gave when the row was written, None
    for a file of somebody else's; `fields` are what the file itself says, which comes before that.
    Every answer is trained unless it is said otherwise.

    Raises Fault.
    """
    text = text or dumped(list(messages))
    bounded(len(text), "messages")
    bounded(len(tools), "tools")
    known = _known(carried)
    answers = [message["role"] == "assistant" for message in messages]
    given = {
        "mask": list(map(int, answers)),
        **known,
        **fields,
        "messages": text,
        "tools": tools,
        "turns": sum(answers),
    }
    if "id" not in given:
        given["id"] = _id(place, text)
    if "token_count" not in given:
        given["token_count"] = estimate_tokens([text], tools)
    given.setdefault("rollout", given["id"])
    if carried is None:
        given.setdefault("task_text", _first_words(messages))
    _check(given, answers)
    try:
        return DatasetRow.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        raise Fault(first["msg"], field=".".join(map(str, first["loc"]))) from None


def carried_facts(row: DatasetRow, *, tokens: bool = False, without: Sequence[str] = ()) -> dict[str, Any]:
    """What a row says beside messages and tools, as JSON values; defaults are left out."""
    left_out = {"messages", "tools", "turns", *without, *(() if tokens else ("tokens",))}
    facts = row.model_dump(mode="json", exclude=left_out, exclude_defaults=True)
    return {"schema_version": row.schema_version, **facts}


def tool_texts(value: Any, field: str = "tools", *, filled: bool = False) -> str:
    """Tool definitions, given as a JSON text, a list or nothing, as the JSON text of a list. Raises Fault."""
    if value is None or value == "":
        return "[]"
    if isinstance(value, str):
        return _tools_of(value, field)
    return _tools_listed(without_nulls(value) if filled else value, field)


@lru_cache(maxsize=256)
def _tools_of(text: str, field: str) -> str:
    """Of a text: rows of one harness have the same one."""
    listed = parsed(text, field=field)
    return "[]" if listed is None else _tools_listed(listed, field)


def _tools_listed(listed: Any, field: str) -> str:
    if not isinstance(listed, list) or not all(isinstance(tool, dict) for tool in listed):
        raise Fault("a list of objects was expected", field=field)
    return dumped(listed)


def _known(carried: Any) -> Fields:
    if carried is None:
        return {}
    known = parsed_object(carried, field=CARRIED) if isinstance(carried, str) else an_object(carried, CARRIED)
    version = known.get("schema_version", DATASET_VERSION)
    if not isinstance(version, int) or version > DATASET_VERSION:
        raise Fault(
            f"it was written by a newer Orchard (version {version}; this one reads {DATASET_VERSION})",
            field=f"{CARRIED}.schema_version",
        )
    return dict(known)


def _check(given: Mapping[str, Any], answers: Sequence[bool]) -> None:
    """Raises Fault where what is carried does not fit the messages, as after somebody's edit."""
    for name in ("mask", "weights"):
        carried = given.get(name) or ()
        if not isinstance(carried, list | tuple) or (carried and len(carried) != len(answers)):
            raise Fault(f"it does not have one number for each of {len(answers)} messages", field=name)
    mask = given["mask"] or ()
    if len(mask) != len(answers) or any(map(operator.gt, map(bool, mask), answers)):
        raise Fault("it trains a message that is not the assistant's", field="mask")
    values = given.get("values") or ()
    if values and len(values) != sum(answers) + 1:
        raise Fault(
            f"it does not have one number for each of {sum(answers)} answers and the end", field="values"
        )


def _first_words(messages: Sequence[Fields]) -> str:
    """What the user said first: as near to the task's instruction as a file of somebody else's comes."""
    first = next((message for message in messages if message["role"] == "user"), None)
    text = content_text(first.get("content")) if first is not None else ""
    return text.encode("utf-8", "replace").decode()


def _id(place: str, text: str) -> str:
    return hashlib.sha256(f"{place}\0{text}".encode("utf-8", "surrogatepass")).hexdigest()[:20]
