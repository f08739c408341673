"""Rows as an Arrow table, column by column."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

from orchard_core.datasets.store import arrays
from orchard_core.datasets.store.arrow import FAULTS, pa
from orchard_core.datasets.store.schema import ANSWER, ORDER, SCHEMA, SPAN, TOKENS, TYPES
from orchard_core.errors import FormatUnsupported
from orchard_core.gateway.json_text import dumps
from orchard_core.types.dataset import DatasetRow, RecordedTokens


def pack(rows: Sequence[DatasetRow], *, messages: Sequence[bytes] | None = None) -> Any:
    """A `pyarrow.Table` of SCHEMA; `messages` stand for the rows' own, encoded. Raises FormatUnsupported
    naming row and field for what a column cannot hold: text that is not Unicode, numbers that are too
    large."""
    columns = {name: _column(name, rows) for name in ORDER if name != "messages" or messages is None}
    if messages is not None:
        columns["messages"] = arrays.encoded(messages)
    return pa.Table.from_arrays([columns[name] for name in ORDER], schema=SCHEMA)


def weight(row: DatasetRow) -> int:
    """About how many bytes a row takes in a table."""
    return sum(_sizes(row).values()) + 9 * len(row.mask) + 600


def largest(row: DatasetRow) -> str:
    """The field that takes most."""
    sizes = _sizes(row)
    return max(sizes, key=lambda name: sizes[name])


def _sizes(row: DatasetRow) -> dict[str, int]:
    tokens = 13 * len(row.tokens.token_ids) if row.tokens is not None else 0
    texts = {name: len(getattr(row, name)) for name in ("messages", "tools", "task_text")}
    return {**texts, "tokens": tokens, "metadata": _size(row.metadata), "provenance": _size(row.provenance)}


def _size(value: Any) -> int:
    """Characters of the texts in a value, about."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        return sum(len(key) + 4 + _size(inner) for key, inner in value.items())
    return sum(map(_size, value)) if isinstance(value, list | tuple) else 8


def _column(name: str, rows: Sequence[DatasetRow]) -> Any:
    make = _maker(name)
    try:
        return make([getattr(row, name) for row in rows])
    except UNFIT as error:
        raise _culprit(name, rows, make, error) from error


UNFIT = (ValueError, TypeError, AttributeError, *FAULTS)
"""What a value raises that a column cannot hold."""


def _culprit(
    name: str, rows: Sequence[DatasetRow], make: Callable[[Sequence[Any]], Any], error: Exception
) -> FormatUnsupported:
    for row in rows:
        try:
            make([getattr(row, name)])
        except UNFIT as own:
            return FormatUnsupported(
                f"row {row.id[:80]!r}, field {name}: a dataset cannot hold it: {str(own)[:200]}",
                hint="leave the row out, or mend the field",
            )
    return FormatUnsupported(
        f"field {name} of {len(rows)} rows: {str(error)[:200]}", hint="write smaller row groups"
    )


def _maker(name: str) -> Callable[[Sequence[Any]], Any]:
    if name in _MAKERS:
        return _MAKERS[name]
    kind = TYPES[name]
    if pa.types.is_list(kind):
        return lambda values: arrays.lists(values, kind.value_type)
    return arrays.texts if kind == pa.string() else lambda values: arrays.numbers(values, kind)


def _json(values: Sequence[Any]) -> Any:
    return arrays.texts([_json_text(value) if value else "{}" for value in values])


def _json_text(value: Any) -> str:
    text = dumps(value).decode()
    if "null" in text and not _finite(value):
        raise ValueError("a number in it is not finite, which JSON cannot say")
    return text


def _finite(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(_finite, value.values()))
    if isinstance(value, list | tuple):
        return all(map(_finite, value))
    return not isinstance(value, float) or math.isfinite(value)


def _tags(values: Sequence[Sequence[str]]) -> Any:
    return arrays.nested(values, arrays.texts(list(chain.from_iterable(values))))


_EMPTY = RecordedTokens(token_ids=(), mask=(), logprobs=())


def _tokens(values: Sequence[RecordedTokens | None]) -> Any:
    held = [_EMPTY if value is None else value for value in values]
    columns = [
        arrays.lists([value.token_ids for value in held], pa.int32()),
        arrays.lists([value.mask for value in held], pa.int8()),
        arrays.lists([value.logprobs for value in held], pa.float64()),
        _records([value.versions for value in held], SPAN),
        _records([value.answers for value in held], ANSWER),
    ]
    return arrays.structs(columns, TOKENS, present=values)


def _records(values: Sequence[Sequence[Any]], kind: Any) -> Any:
    flat = list(chain.from_iterable(values))
    columns = []
    for field in kind:
        column = [getattr(item, field.name) for item in flat]
        text = field.type == pa.string()
        columns.append(arrays.texts(column) if text else arrays.numbers(column, field.type))
    return arrays.nested(values, arrays.structs(columns, kind))


_MAKERS: dict[str, Callable[[Sequence[Any]], Any]] = {
    "token_count_exact": arrays.flags,
    "provenance": _json,
    "metadata": _json,
    "tags": _tags,
    "tokens": _tokens,
}
