"""What a dataset is made of, as stored in its `manifest.json`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import Field, JsonValue, ValidationError, field_validator

from orchard_core.errors import DatasetCorrupt, DatasetNotFound
from orchard_core.types.base import Record
from orchard_core.types.dataset import DATASET_VERSION

MANIFEST_NAME = "manifest.json"
DATA, PARTIAL = "data", ".partial"
_FILE = re.compile(r"data/[A-Za-z0-9_]+-\d{5,}-of-\d{5,}\.parquet")


class SourceReport(Record):
    """What was asked of one source, and what came of it."""

    name: str
    """As the recipe calls it."""
    path: str = ""
    """Where it lay, as the recipe says it."""
    kind: str = ""
    """`run`, `matrix`, `dataset`, or the name of a format."""
    weight: float | None = None
    """Its share as asked for; None: everything of it."""
    digest: str = ""
    """Hash that tells whether it is the same source: of a run's configuration, a manifest or a file."""
    read: int = 0
    """Rows that were looked at."""
    kept: int = 0
    """Rows that are in the dataset."""
    dropped: Mapping[str, int] = Field(default_factory=dict)
    """Rows left out, by the filter that did it first."""


class FilterReport(Record):
    """What one filter did."""

    name: str
    """As the recipe calls it."""
    settings: Mapping[str, JsonValue] = Field(default_factory=dict)
    """Its options."""
    dropped: int = 0
    """Rows that it left out, and no filter before it."""


class Made(Record):
    """How a dataset came about."""

    by: str = ""
    """What made it, such as `orchard data mix`."""
    recipe: Mapping[str, JsonValue] = Field(default_factory=dict)
    """The resolved recipe."""
    recipe_digest: str = ""
    """Hash of it."""
    recipe_text: str = ""
    """The recipe as its file had it; empty: it came from flags alone."""
    seed: int | None = None
    """What drew, drew by it."""
    sources: tuple[SourceReport, ...] = ()
    """In the recipe's order."""
    filters: tuple[FilterReport, ...] = ()
    """In the order they were applied."""
    notes: tuple[str, ...] = ()
    """What could not be met, a sentence each."""
    versions: Mapping[str, str] = Field(default_factory=dict)
    """Of what else decides the files' bytes, such as `pyarrow`."""


class Shard(Record):
    """One Parquet file."""

    file: str
    """Its place in the dataset's directory, such as `data/train-00000-of-00002.parquet`."""
    split: str
    """The split whose rows it holds."""
    rows: int = Field(ge=0)
    """How many."""
    bytes: int = Field(ge=0)
    """Its size."""
    sha256: str
    """Hash of the file, in hexadecimal."""

    @field_validator("file")
    @classmethod
    def _inside(cls, value: str) -> str:
        if not _FILE.fullmatch(value):
            raise ValueError("is no shard's name, such as data/train-00000-of-00002.parquet")
        return value


class SplitTotals(Record):
    """One split."""

    rows: int = 0
    """Rows in it."""
    tokens: int = 0
    """Sum of their `token_count`."""
    turns: int = 0
    """Assistant messages."""
    trained_turns: int = 0
    """Those of them with mask 1."""


class Manifest(Record):
    """What is in `manifest.json`."""

    format: Literal["orchard-dataset"] = "orchard-dataset"
    """Tells it from other projects' manifests."""
    schema_version: int = DATASET_VERSION
    """Version of the rows and of this record."""
    created_at: float
    """Seconds since the epoch."""
    orchard: str
    """Version of orchard-core that wrote it."""
    rows: int
    """Of all splits."""
    splits: Mapping[str, SplitTotals]
    """By name, in order."""
    shards: tuple[Shard, ...]
    """In order; a split's rows stand in the order of its shards."""
    made: Made = Made()
    """How it came about."""


def is_dataset(root: Path) -> bool:
    """Whether this is the directory of a whole dataset."""
    return (root / MANIFEST_NAME).is_file()


def read_manifest(root: Path) -> Manifest:
    """The stored manifest. Raises DatasetNotFound, DatasetCorrupt naming the field."""
    path = root / MANIFEST_NAME
    if path.exists() and not path.is_file():  # a pipe would keep us waiting for its writer
        raise DatasetCorrupt("no file", path=str(path), hint="restore it from a copy")
    try:
        text = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise DatasetNotFound(
            f"there is no dataset at {root}: it has no {MANIFEST_NAME}", hint=_how(root)
        ) from None
    _refuse_other(text, path)
    try:
        manifest = Manifest.model_validate_json(text)
    except ValidationError as error:
        item = error.errors(include_url=False, include_input=False)[0]
        raise DatasetCorrupt(
            f"damaged: {item['msg']}",
            path=str(path),
            field=".".join(map(str, item["loc"])),
            hint="restore it from a copy, or undo the last edit",
        ) from None
    _check_sums(manifest, path)
    return manifest


def _how(root: Path) -> str:
    if (root / PARTIAL).is_dir():
        return "it was not written to its end: run the command that wrote it again (in Python: resume=True)"
    return "orchard data mix makes one"


def _refuse_other(text: bytes, path: Path) -> None:
    """Raises DatasetCorrupt for what a newer Orchard or another project wrote."""
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DatasetCorrupt(
            f"not JSON, or cut short: {str(error)[:200]}", path=str(path), hint="restore it from a copy"
        ) from None
    if not isinstance(fields, dict) or fields.get("format") != "orchard-dataset":
        raise DatasetCorrupt(
            "the manifest of another project",
            path=str(path),
            field="format",
            hint="orchard data import reads other formats",
        )
    version = fields.get("schema_version")
    if isinstance(version, int) and version > DATASET_VERSION:
        raise DatasetCorrupt(
            f"written by a newer Orchard (version {version}; this one reads {DATASET_VERSION})",
            path=str(path),
            field="schema_version",
            hint="pip install --upgrade orchard-core",
        )


def _check_sums(manifest: Manifest, path: Path) -> None:
    for split, totals in manifest.splits.items():
        if totals.rows != sum(shard.rows for shard in manifest.shards if shard.split == split):
            raise _torn(path, f"splits.{split}.rows")
    if {shard.split for shard in manifest.shards} - manifest.splits.keys():
        raise _torn(path, "splits")
    if manifest.rows != sum(shard.rows for shard in manifest.shards):
        raise _torn(path, "rows")


def _torn(path: Path, field: str) -> DatasetCorrupt:
    return DatasetCorrupt(
        "does not agree with the shards",
        path=str(path),
        field=field,
        hint="restore it from a copy, or undo the last edit",
    )
