"""Arrow arrays from Python values by way of their buffers.

`pyarrow.array` and `to_numpy` do the same; they take longer for numbers, and import pandas where that is
installed, which takes a second.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from orchard_core.datasets.store.arrow import np, pa

CODES = {pa.int8(): "b", pa.int32(): "i", pa.int64(): "q", pa.float64(): "d"}
"""Type codes of `array` for numbers."""


def texts(values: Sequence[str | None]) -> Any:
    """Strings. Raises UnicodeEncodeError for a lone surrogate, OverflowError beyond two gibibytes."""
    return encoded([b"" if value is None else value.encode() for value in values], _validity(values))


def encoded(values: Sequence[bytes], validity: Any = None) -> Any:
    """Strings that are UTF-8 already."""
    buffers = [validity, _offsets(values), pa.py_buffer(b"".join(values))]
    return pa.Array.from_buffers(pa.string(), len(values), buffers)


def numbers(values: Sequence[Any], kind: Any) -> Any:
    """Numbers of a type in CODES. Raises TypeError, OverflowError for what is none of them."""
    flat = array(CODES[kind], [0 if value is None else value for value in values])
    return pa.Array.from_buffers(kind, len(flat), [_validity(values), pa.py_buffer(flat)])


def flags(values: Sequence[bool]) -> Any:
    """Truth values."""
    return pa.Array.from_buffers(pa.bool_(), len(values), [None, _bits(values)])


def lists(values: Sequence[Sequence[Any]], kind: Any) -> Any:
    """Lists of numbers, of a type in CODES."""
    flat = b"".join([array(CODES[kind], value) for value in values])
    inner = pa.Array.from_buffers(kind, sum(map(len, values)), [None, pa.py_buffer(flat)])
    return nested(values, inner)


def nested(values: Sequence[Sequence[Any]], inner: Any) -> Any:
    """Lists whose elements, one after the other, are `inner`."""
    kind = pa.list_(inner.type)
    return pa.Array.from_buffers(kind, len(values), [None, _offsets(values)], children=[inner])


def structs(columns: Sequence[Any], kind: Any, *, present: Sequence[object] | None = None) -> Any:
    """Records of these columns; those of which `present` has None are null."""
    validity = None if present is None else _validity(present)
    return pa.Array.from_buffers(kind, len(columns[0]), [validity], children=list(columns))


def view(column: Any) -> Any:
    """Numbers of an Arrow array without nulls, as NumPy sees their buffer."""
    kind = np.dtype(CODES[column.type])
    buffer = column.buffers()[1]
    if buffer is None or not len(column):
        return np.empty(0, kind)
    return np.frombuffer(buffer, kind, count=len(column), offset=column.offset * kind.itemsize)


def elements(column: Any) -> tuple[Any, Any]:
    """What stands in an array of lists, one after the other, and where each list begins and ends in it."""
    at = view(column.offsets)
    return column.values.slice(at[0], at[-1] - at[0]), at - at[0]


def absent(column: Any) -> list[bool]:
    """Of each value whether it is null."""
    if not column.null_count:
        return [False] * len(column)
    bits = np.unpackbits(np.frombuffer(column.buffers()[0], np.uint8), bitorder="little")
    gone: list[bool] = (bits[column.offset : column.offset + len(column)] == 0).tolist()
    return gone


def _offsets(values: Sequence[Any]) -> Any:
    return pa.py_buffer(array("i", [0, *accumulate(map(len, values))]))


def _validity(values: Sequence[object]) -> Any:
    """None where no value is missing."""
    return _bits([value is not None for value in values]) if None in values else None


def _bits(values: Sequence[bool]) -> Any:
    return pa.py_buffer(np.packbits(np.fromiter(values, dtype=bool, count=len(values)), bitorder="little"))
