"""Parquet files of other people, a few rows at a time, and our own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from orchard_core.errors import ConfigError, FormatUnsupported
from orchard_core.formats.fault import Fault
from orchard_core.formats.limits import MIB
from orchard_core.formats.text import parsed

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]

MAGIC = b"PAR1"
_AT_ONCE = 4 * MIB
"""Bytes of rows that are read together."""
_ROWS_AT_ONCE = 64


def need_pyarrow() -> Any:
    """pyarrow. Raises ConfigError where it is not installed."""
    try:
        import pyarrow.parquet  # type: ignore[import-untyped]
    except ImportError as error:
        raise ConfigError("Parquet files need pyarrow", hint="pip install 'orchard-core[data]'") from error
    return pyarrow


def parquet_rows(path: Path) -> Iterator[tuple[dict[str, Any], bool]]:
    """Rows as values, and whether members may be nulls that other rows' members left behind. JSON columns are
    given as what they hold. Raises Fault and OSError."""
    arrow = need_pyarrow()
    try:
        file = arrow.parquet.ParquetFile(path, pre_buffer=False, memory_map=False)
    except (arrow.ArrowException, OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise Fault(f"it cannot be read as Parquet: {_first_line(error)}") from None
    with file:
        yield from _read(arrow, file)


def _read(arrow: Any, file: Any) -> Iterator[tuple[dict[str, Any], bool]]:
    schema = file.schema_arrow
    for group in range(file.num_row_groups):
        size = _batch_rows(file.metadata.row_group(group))
        batches = file.iter_batches(batch_size=size, row_groups=[group], use_threads=False)
        while True:
            try:
                batch = next(batches, None)
            except (arrow.ArrowException, OSError, ValueError, OverflowError) as error:
                raise Fault(f"it cannot be read as Parquet: {_first_line(error)}") from None
            if batch is None:
                break
            yield from _unfolded(batch, schema)


def _unfolded(batch: pa.RecordBatch, schema: pa.Schema) -> Iterator[tuple[dict[str, Any], bool]]:
    for place in range(batch.num_rows):
        row = {}
        for name, column in zip(schema.names, batch.columns, strict=True):
            try:
                row[name] = _value(column[place].as_py(), schema.field(name).type, name)
            except UnicodeDecodeError as error:
                raise Fault(f"it is not UTF-8: {error.reason} at byte {error.start}", field=name) from None
            except Fault:
                raise
            except (ValueError, OverflowError, RecursionError) as error:
                raise Fault(_first_line(error), field=name) from None
        yield row, True


def _batch_rows(group: Any) -> int:
    """So many rows of a group that they come to a few MiB."""
    each = max(1, group.total_byte_size // max(1, group.num_rows))
    return int(max(1, min(_ROWS_AT_ONCE, _AT_ONCE // each)))


def _value(value: Any, kind: Any, field: str) -> Any:
    """The value with what JSON columns hold in place of their texts."""
    if value is None:
        return None
    if getattr(kind, "extension_name", "") == "arrow.json":
        return parsed(value, field=field)
    if _is_list(kind):
        if not _holds_json(kind):
            return value
        return [_value(item, kind.value_type, f"{field}[{place}]") for place, item in enumerate(value)]
    if _is_struct(kind):
        if not _holds_json(kind):
            return value
        return {
            below.name: _value(value.get(below.name), below.type, f"{field}.{below.name}")
            for below in (kind.field(place) for place in range(kind.num_fields))
        }
    return value


def _holds_json(kind: Any) -> bool:
    if getattr(kind, "extension_name", "") == "arrow.json":
        return True
    if _is_list(kind):
        return _holds_json(kind.value_type)
    if _is_struct(kind):
        return any(_holds_json(kind.field(place).type) for place in range(kind.num_fields))
    return False


def _is_list(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _is_struct(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_struct(kind))


def _utf8(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(_utf8, value.values()))
    if isinstance(value, list):
        return all(map(_utf8, value))
    return (
        not isinstance(value, str)
        or value.isascii()
        or not any("\ud800" <= char <= "\udfff" for char in value)
    )


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:300]


class ParquetSheet:
    """Writes rows with a fixed schema; a few of them are held at a time."""

    def __init__(self, file: BinaryIO, schema: pa.Schema) -> None:
        self._arrow = need_pyarrow()
        self._schema = schema
        self._writer = self._arrow.parquet.ParquetWriter(file, schema, compression="zstd")
        self._held: list[dict[str, Any]] = []
        self._size = 0
        self._count = 0

    def add(self, record: dict[str, Any], size: int) -> None:
        """One more row of about so many bytes."""
        self._held.append(record)
        self._size += size
        if self._size > _AT_ONCE:
            self._flush()

    def __enter__(self) -> ParquetSheet:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """The file's end is written in any case: pyarrow would do it later, on a closed file."""
        try:
            if kind is None:
                self._flush()
        finally:
            self._writer.close()

    def _flush(self) -> None:
        if self._held:
            arrays = [self._column(field) for field in self._schema]
            self._writer.write_batch(self._arrow.RecordBatch.from_arrays(arrays, schema=self._schema))
            self._count += len(self._held)
        self._held, self._size = [], 0

    def _column(self, field: Any) -> Any:
        values = [row.get(field.name) for row in self._held]
        try:
            return self._array(field, values)
        except UnicodeEncodeError:
            place = next(place for place, value in enumerate(values) if not _utf8(value))
            raise FormatUnsupported(
                f"row {self._count + place} has half a surrogate pair in {field.name}, as Parquet cannot",
                hint="write JSON lines (.jsonl)",
            ) from None

    def _array(self, field: Any, values: list[Any]) -> Any:
        """pyarrow makes no lists of JSON by itself: they are lists of texts under another name."""
        arrow = self._arrow
        if not (_is_list(field.type) and _holds_json(field.type)):
            return arrow.array(values, field.type)
        texts = arrow.array(values, arrow.list_(arrow.string()))
        items = arrow.ExtensionArray.from_storage(field.type.value_type, texts.values)
        return arrow.ListArray.from_arrays(texts.offsets, items, type=field.type)
