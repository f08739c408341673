"""The published part `gui`: columns `messages`, `images`, `reward`, `status` and `metadata`.

A published row is one decision: the conversation up to it. Only its last answer is trained, on import; the
ones before it are other rows' decisions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchard_core.errors import FormatUnsupported
from orchard_core.formats.columns import need_pyarrow
from orchard_core.formats.conversation import Fields, conversation
from orchard_core.formats.fault import Fault
from orchard_core.formats.published.beside import image_bytes, image_url, put_back, take_out
from orchard_core.formats.published.card import card
from orchard_core.formats.published.columns import GUI, is_gui
from orchard_core.formats.published.row import published_row, read_metadata, told_metadata
from orchard_core.formats.records import Found, first_record, read_rows_of
from orchard_core.formats.sheets import Layout, write_table
from orchard_core.formats.text import a_list, a_text, dumped, parsed
from orchard_core.types.base import Record
from orchard_core.types.dataset import DatasetRow

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]

NAME = "orchard-gui"
_MEMBERS = ("role", "content")
OURS = ("task_id",)
"""Published members that rows of ours have."""


class GuiConfig(Record):
    """Options of the format."""

    steps: bool = False
    """Write one row for each answer that is trained, with the conversation up to it, as the published rows
    are; false: one row for each row."""


class GuiFormat:
    """JSON lines (pictures as data URLs) and Parquet (as `datasets` holds pictures)."""

    name = NAME
    writes = True

    def __init__(self, config: GuiConfig) -> None:
        self._config = config

    def recognises(self, path: Path) -> bool:
        """By its first row's columns."""
        first = first_record(path)
        return first is not None and is_gui(first)

    def read(self, path: Path) -> Iterator[DatasetRow]:
        """Raises DatasetNotFound and DatasetCorrupt."""
        return read_rows_of(path, _row)

    def write(self, rows: Iterable[DatasetRow], path: Path) -> int:
        """Raises DatasetExists and FormatUnsupported."""
        layout = Layout(
            records=self._records,
            schema=_schema,
            split_file="gui/{split}/0000.parquet",
            card=partial(card, "gui"),
        )
        return write_table(rows, path, layout)

    def _records(self, row: DatasetRow, parquet: bool) -> Iterator[dict[str, Any]]:
        for step in _steps(row) if self._config.steps else [row]:
            yield _record(step, parquet)


def _row(found: Found) -> DatasetRow:
    fields = found.fields
    for name in GUI:
        if name not in fields:
            raise Fault("there is no such column", field=name)
    theirs, ours, beside, text = read_metadata(a_text(fields["metadata"], "metadata"), OURS)
    plain = conversation(fields["messages"], filled=found.filled).messages
    images = [
        image_url(image, f"images[{place}]")
        for place, image in enumerate(a_list(fields["images"] or [], "images"))
    ]
    messages = put_back(plain, beside, images)
    reward, status = fields["reward"], fields["status"]
    if reward is not None and (isinstance(reward, bool) or not isinstance(reward, int | float)):
        raise Fault("a number was expected", field="reward")
    return published_row(
        messages,
        tools=dumped(ours.pop("tools", [])) if ours else "[]",
        place=found.place,
        ours=ours,
        note=NAME,
        kept={**text, **({"status": status} if isinstance(status, str) and ours is None else {})},
        split=found.split,
        **_theirs(messages, theirs, reward),
    )


def _theirs(messages: list[Fields], theirs: Fields, reward: float | None) -> Fields:
    answers = [place for place, message in enumerate(messages) if message["role"] == "assistant"]
    known: Fields = {"mask": [int(place == answers[-1]) if answers else 0 for place in range(len(messages))]}
    if reward is not None:
        known["reward"] = float(reward)
    for name in ("task_id", "instance_id"):
        if isinstance(theirs.get(name), str):
            known.setdefault("task", theirs[name])
    return known


def _steps(row: DatasetRow) -> Iterator[DatasetRow]:
    messages = parsed(row.messages)
    for turn, place in enumerate(place for place, bit in enumerate(row.mask) if bit):
        yield row.model_copy(
            update={
                "id": f"{row.id}@{turn}",
                "messages": dumped(messages[: place + 1]),
                "mask": (*(0,) * place, 1),
                "weights": row.weights[: place + 1],
                "values": (),
                "turns": sum(message["role"] == "assistant" for message in messages[: place + 1]),
            }
        )


def _record(row: DatasetRow, parquet: bool) -> Fields:
    messages = parsed(row.messages)
    if any(message.get("tool_calls") or message["role"] == "tool" for message in messages):
        raise FormatUnsupported(
            f"row {row.id} holds tool calls, for which the published gui columns have no place",
            hint="write orchard-swe, hf or atif",
        )
    taken = take_out(messages, _MEMBERS)
    given = row.metadata.get(NAME)
    note = given if isinstance(given, dict) else {}
    theirs = parsed(str(note.get("metadata", "{}")))
    again = published_row(
        messages, tools="[]", place="", ours=None, note=NAME, kept={}, **_theirs(messages, theirs, row.reward)
    )
    beside = _unless_guessed(taken.messages, taken.beside, taken.images, messages)
    more = {
        **({"beside": beside} if beside else {}),
        **({"tools": parsed(row.tools)} if row.tools != "[]" else {}),
    }
    status = note.get("status")
    return {
        "messages": taken.messages,
        "images": [image_bytes(url) for url in taken.images] if parquet else taken.images,
        "reward": row.reward,
        "status": status if isinstance(status, str) else row.outcome.value if row.outcome else "",
        "metadata": told_metadata(row, NAME, {"task_id": row.task}, again, more),
    }


def _unless_guessed(plain: list[Fields], beside: Fields, images: list[str], whole: list[Fields]) -> Fields:
    """Nothing, where a reader finds the pictures' places by the marks alone."""
    try:
        return {} if put_back(plain, None, images) == whole else beside
    except Fault:
        return beside


def _schema() -> pa.Schema:
    """As the published files have it."""
    arrow = need_pyarrow()
    text = arrow.string()
    message = arrow.struct([("role", text), ("content", text)])
    image = arrow.struct([("bytes", arrow.binary()), ("path", text)])
    columns = [
        ("messages", arrow.list_(message)),
        ("images", arrow.list_(image)),
        ("reward", arrow.float64()),
        ("status", text),
        ("metadata", text),
    ]
    value = {"dtype": "string", "_type": "Value"}
    features = {
        "messages": {"feature": {"role": value, "content": value}, "_type": "List"},
        "images": {"feature": {"_type": "Image"}, "_type": "List"},
        "reward": {"dtype": "float64", "_type": "Value"},
        "status": value,
        "metadata": value,
    }
    return arrow.schema(columns, metadata={"huggingface": dumped({"info": {"features": features}})})
