"""`credit.json`: what one directory of credits was asked for."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from pydantic import Field, JsonValue, ValidationError

from orchard_core import __version__
from orchard_core.datasets.credit.estimator import Estimator
from orchard_core.errors import ConfigError, DatasetCorrupt, DatasetError, DatasetNotFound
from orchard_core.rollout.config import Difference, flat
from orchard_core.types.base import Record
from orchard_core.types.credit import CREDIT_VERSION

HEAD_NAME = "credit.json"
LINES_NAME = "credits.jsonl"
BRANCHES_NAME = "branches.jsonl"
FOLDER = "credit"
"""The folder of a run that holds its directories of credits."""

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")


class CreditHead(Record):
    """What stands in `credit.json`."""

    schema_version: int = CREDIT_VERSION
    """Version of this record's shape."""
    estimator: str
    """`judge`, `branch`, or a plugin's own."""
    settings: Mapping[str, JsonValue] = Field(default_factory=dict)
    """What decides the result; a directory never holds credits of two settings."""
    source: str = ""
    """The run or dataset as the user named it."""
    orchard: str = __version__
    """Version of orchard-core that made it."""
    created_at: float = 0.0
    """Seconds since the epoch."""

    @classmethod
    def of(cls, estimator: Estimator, *, threshold: float, source: str | Path) -> Self:
        """Of credits that this estimator is about to give; a score of at least `threshold` has passed."""
        return cls(
            estimator=estimator.name,
            settings={**estimator.settings, "threshold": threshold},
            source=str(source),
            created_at=time.time(),
        )

    def differences(self, other: CreditHead) -> list[Difference]:
        """What decides the result and differs."""
        mine, theirs = (
            flat(head.model_dump(mode="json", include={"estimator", "settings"})) for head in (self, other)
        )
        return [
            Difference(field=field, left=mine.get(field), right=theirs.get(field))
            for field in sorted({*mine, *theirs})
            if mine.get(field) != theirs.get(field)
        ]


def credit_directory(run: Path, name: str) -> Path:
    """`RUN/credit/NAME`. Raises ConfigError for a name that is no plain file name."""
    if not _NAME.fullmatch(name):
        raise ConfigError(
            f"{name!r} cannot name a directory of credits", hint="use letters, digits, '.', '_' and '-'"
        )
    return run / FOLDER / name


def read_head(root: Path) -> CreditHead:
    """Raises DatasetNotFound, DatasetCorrupt, and DatasetError for what a newer Orchard wrote."""
    path = root / HEAD_NAME
    try:
        text = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise DatasetNotFound(f"there are no credits at {root}", hint=_where(root)) from None
    try:
        return CreditHead.model_validate_json(text)
    except ValidationError as error:
        if (version := _version(text)) > CREDIT_VERSION:
            raise DatasetError(
                f"{path} was written by a newer Orchard (version {version}; this one reads {CREDIT_VERSION})",
                hint="pip install --upgrade orchard-core",
            ) from None
        first = error.errors(include_url=False, include_input=False)[0]
        raise DatasetCorrupt(
            first["msg"],
            path=str(path),
            field=".".join(map(str, first["loc"])),
            hint="restore it from a copy, or assign credit anew with another --name",
        ) from None


def _version(text: bytes) -> int:
    found = re.match(rb'\s*\{\s*"schema_version"\s*:\s*(\d{1,9})', text)
    return int(found[1]) if found else 0


def _where(root: Path) -> str:
    held = (
        sorted(path.parent.name for path in (root / FOLDER).glob(f"*/{HEAD_NAME}")) if root.is_dir() else []
    )
    if held:
        return f"name one of {', '.join(str(root / FOLDER / name) for name in held)}"
    return "orchard data credit RUN makes some"
