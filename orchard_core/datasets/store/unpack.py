"""Rows from an Arrow table, column by column. The schema vouches for the types: none is validated again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from itertools import pairwise
from typing import Any

from orchard_core.datasets.store.arrays import absent, elements, view
from orchard_core.datasets.store.arrow import pa
from orchard_core.datasets.store.schema import NULLABLE, ORDER
from orchard_core.errors import DatasetCorrupt
from orchard_core.gateway.json_text import JsonFault, loads
from orchard_core.types.dataset import AnswerSpan, DatasetRow, RecordedTokens
from orchard_core.types.model import VersionSpan
from orchard_core.types.rollout import Attribution, Outcome
from orchard_core.types.sample import SampleLabel

HINT = "orchard data verify DATASET names every fault; restore the shard from a copy"


def unpack(table: Any, *, path: str, first: int) -> Iterator[DatasetRow]:
    """The rows of a table, which starts at row `first` of a file. Raises DatasetCorrupt, which names row and
    field."""
    make = DatasetRow.model_construct
    for row in rows_of(table, ORDER, path=path, first=first):
        yield make(**dict(zip(ORDER, row, strict=True)))


def rows_of(table: Any, names: Sequence[str], *, path: str, first: int) -> Iterator[tuple[Any, ...]]:
    """These columns of a table, row by row. Raises DatasetCorrupt after the rows before the fault."""
    try:
        columns = [values(name, table, path=path, first=first) for name in names]
    except DatasetCorrupt:
        if table.num_rows <= 1:
            raise
        for place in range(table.num_rows):
            yield from rows_of(table.slice(place, 1), names, path=path, first=first + place)
        return
    yield from zip(*columns, strict=True)


def _whole(table: Any, name: str) -> Any:
    column = table.column(name)
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def values(name: str, table: Any, *, path: str, first: int) -> Sequence[Any]:
    """One column of a table, as a row holds it. Raises DatasetCorrupt."""
    column = _whole(table, name)
    if column.null_count and name not in NULLABLE:
        row = first + absent(column).index(True)
        raise DatasetCorrupt("there is no value", path=path, row=row, field=name, hint=HINT)
    read = _READERS.get(name, _plain)
    try:
        return read(column)
    except _UNFIT:
        for place in range(len(column)):
            try:
                read(column.slice(place, 1))
            except _UNFIT as own:
                raise DatasetCorrupt(
                    _words(own), path=path, row=first + place, field=name, hint=HINT
                ) from own
        raise


_UNFIT = (ValueError, TypeError)


def _words(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return f"the text is not UTF-8 (byte {error.start})"
    return str(error)[:200]


def _plain(column: Any) -> list[Any]:
    values: list[Any] = column.to_pylist()
    return values


def _named(kind: type[StrEnum]) -> Callable[[Any], list[Any]]:
    known = {item.value: item for item in kind}

    def read(column: Any) -> list[Any]:
        values = column.to_pylist()
        for value in values:
            if value is not None and value not in known:
                raise ValueError(f"{value!r} is none of: {', '.join(known)}")
        return [None if value is None else known[value] for value in values]

    return read


def _json(column: Any) -> list[Any]:
    return [_object(text) for text in column.to_pylist()]


def _object(text: str) -> dict[str, Any]:
    try:
        value = {} if text == "{}" else loads(text)
    except JsonFault as fault:
        raise ValueError(f"is not JSON: {fault}") from fault
    if not isinstance(value, dict):
        raise TypeError("the JSON is no object")
    return value


def _texts(column: Any) -> list[Any]:
    return [tuple(value) for value in column.to_pylist()]


def numbers(column: Any) -> list[tuple[Any, ...]]:
    """Lists of numbers as tuples, by way of one buffer; a null list is empty. Raises ValueError for a number
    that is missing."""
    inner, at = elements(column)
    if inner.null_count:
        raise ValueError("a number is missing in the list")
    flat = view(inner)
    flat = flat.tobytes() if _is_small(flat) else flat.tolist()
    return [tuple(flat[start:end]) for start, end in pairwise(at.tolist())]


def _is_small(numbers: Any) -> bool:
    """Bytes without a sign, such as masks: they become tuples several times as fast."""
    return numbers.itemsize == 1 and (not len(numbers) or int(numbers.min()) >= 0)


def _tokens(column: Any) -> list[RecordedTokens | None]:
    ids, masks, logprobs = (numbers(column.field(name)) for name in ("token_ids", "mask", "logprobs"))
    versions = column.field("versions").to_pylist()
    answers = column.field("answers").to_pylist()
    gone = absent(column)
    return [
        None
        if missing
        else RecordedTokens.model_construct(
            token_ids=ids[place],
            mask=masks[place],
            logprobs=logprobs[place],
            versions=tuple(VersionSpan.model_construct(**span) for span in versions[place]),
            answers=tuple(AnswerSpan.model_construct(**span) for span in answers[place]),
        )
        for place, missing in enumerate(gone)
    ]


_READERS: dict[str, Callable[[Any], Sequence[Any]]] = {
    "label": _named(SampleLabel),
    "outcome": _named(Outcome),
    "attribution": _named(Attribution),
    "provenance": _json,
    "metadata": _json,
    "tags": _texts,
    "mask": numbers,
    "weights": numbers,
    "values": numbers,
    "tokens": _tokens,
}
