"""Reading a JSON record of our own that lies in a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from orchard_core.errors import RecordCorrupt, StoreError
from orchard_core.types.base import Record

R = TypeVar("R", bound=Record)


def parse_record(kind: type[R], text: bytes, *, path: Path) -> R:
    """The record. Raises StoreError when a newer Orchard wrote it, RecordCorrupt when it is damaged."""
    newest = kind.model_fields["schema_version"].default
    version = _version(text)
    if version > newest:
        raise StoreError(
            f"{path} was written by a newer Orchard (schema {version}; this one reads {newest})",
            hint="pip install --upgrade orchard-core",
        )
    try:
        return kind.model_validate_json(text)
    except ValidationError as error:
        raise RecordCorrupt(
            f"{path} is damaged: {_first(error)}", hint="restore it from a copy, or undo the last edit"
        ) from None


def _version(text: bytes) -> int:
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        return 0
    version = fields.get("schema_version") if isinstance(fields, dict) else None
    return version if isinstance(version, int) else 0


def _first(error: ValidationError) -> str:
    item = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(str(part) for part in item["loc"])
    return f"{where}: {item['msg']}" if where else item["msg"]
