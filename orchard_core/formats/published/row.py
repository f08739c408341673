"""The metadata column of both published parts: theirs kept to the letter, ours under `orchard` in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from orchard_core.formats.conversation import Fields
from orchard_core.formats.imported import CARRIED, carried_facts, imported_row
from orchard_core.formats.text import dumped, parsed_object
from orchard_core.types.dataset import DatasetRow

_NOT_TOLD = ("id", "rollout", "split", "metadata", "schema_version")
"""What a row may differ in from the one its file gives, without a need to say so."""


def told_metadata(
    row: DatasetRow, note: str, fresh: Mapping[str, Any], read_again: DatasetRow, more: Mapping[str, Any]
) -> str:
    """The text of the metadata column.

    A row that was read from such a file and is unchanged (`read_again` is what its file gives) gets its own
    text back; any other says what it is under `orchard`, `more` with it. `fresh` are the published members of
    a row of ours.
    """
    given = row.metadata.get(note)
    original = given.get("metadata") if isinstance(given, dict) else None
    facts = carried_facts(row)
    metadata = {key: value for key, value in row.metadata.items() if key != note}
    if isinstance(original, str):
        if _told(facts) == _told(carried_facts(read_again)) and not metadata and not more:
            return original
        fresh = {key: value for key, value in parsed_object(original).items() if key != CARRIED}
    facts.pop("metadata", None)
    if metadata:
        facts["metadata"] = metadata
    return dumped({**fresh, CARRIED: {**facts, **more}})


def _told(facts: Mapping[str, Any]) -> Fields:
    return {key: value for key, value in facts.items() if key not in _NOT_TOLD}


def read_metadata(text: str, fresh: Sequence[str]) -> tuple[Fields, Fields | None, Any, Fields]:
    """Their members, our facts (None in a file of somebody else's), what stands beside the messages, and what
    to keep for writing the row back; `fresh` are the members that rows of ours have. Raises Fault."""
    theirs = parsed_object(text, field="metadata")
    ours = theirs.pop(CARRIED, None)
    if not isinstance(ours, dict):
        return theirs, None, None, {"metadata": text}
    kept = {} if set(theirs) <= set(fresh) else {"metadata": dumped(theirs)}
    return theirs, ours, ours.pop("beside", None), kept


def published_row(
    messages: Sequence[Fields],
    *,
    tools: str,
    place: str,
    ours: Fields | None,
    note: str,
    kept: Mapping[str, str],
    **theirs: Any,
) -> DatasetRow:
    """A row of a published file; `theirs` counts for files of somebody else's alone. Raises Fault."""
    row = imported_row(messages, tools=tools, place=place, carried=ours, **(theirs if ours is None else {}))
    return row.model_copy(update={"metadata": {**row.metadata, note: dict(kept)}}) if kept else row
