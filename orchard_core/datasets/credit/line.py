"""The lines of `credits.jsonl`: one Credit each, checked as `checked.py` says."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from orchard_core.datasets.credit import checked
from orchard_core.datasets.credit.checked import Place, corrupt
from orchard_core.datasets.credit.sound import fault_of
from orchard_core.types.credit import CREDIT_VERSION, Credit

_ROLLOUT = re.compile(rb'\{"schema_version":\d{1,9},"rollout":("(?:[^"\\]|\\.)*")')


def decode(line: bytes, *, path: Path, row: int) -> Credit:
    """The credit of a whole line. Raises DatasetCorrupt naming the field."""
    credit = checked.decode(line, Credit, path=path, row=row)
    if fault := fault_of(credit):
        raise corrupt(fault.what, path, row, fault.field)
    return credit


def scan(path: Path) -> Iterator[tuple[str, Place]]:
    """Rollout and place of every whole line, in order, up to a torn tail; no credit is made.

    Raises DatasetCorrupt for a bad line before a valid one, and DatasetError for one of a newer Orchard.
    """
    for line, place in checked.scan(path, newest=CREDIT_VERSION):
        yield _rollout(line, path, place.row), place


def _rollout(line: bytes, path: Path, row: int) -> str:
    found = _ROLLOUT.match(line)
    if found is None:
        raise corrupt("not a credit", path, row)
    try:
        return str(json.loads(found[1]))
    except ValueError:  # not UTF-8, or an escape that is none
        raise corrupt("not text", path, row, "rollout") from None
