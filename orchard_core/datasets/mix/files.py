"""What a source's files are like, to see whether they change under a mix."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

from orchard_core.errors import DatasetError, DatasetNotFound

Stamp = dict[str, tuple[int, int]]
"""By name within the source: bytes, and when it was last written, ns since the epoch."""


def stamp(path: Path) -> Stamp:
    """Of a file, or of every file below a directory. Raises DatasetNotFound."""
    if not path.exists():
        raise DatasetNotFound(f"there is nothing at {path}", hint="look for a misspelt path")
    return dict(sorted(_stamps(path)))


def _stamps(path: Path) -> Iterator[tuple[str, tuple[int, int]]]:
    if not path.is_dir():
        yield path.name, _of(path.stat())
        return
    for folder, _, names in os.walk(path):
        for name in names:
            found = Path(folder, name)
            try:
                told = found.stat()
            except FileNotFoundError:  # a link to nothing, or gone by now
                continue
            yield str(found.relative_to(path)), _of(told)


def _of(told: os.stat_result) -> tuple[int, int]:
    return told.st_size, told.st_mtime_ns


def as_text(files: Stamp) -> str:
    """For the index."""
    return json.dumps(files)


def unchanged(before: str, now: Stamp, path: Path, *, when: str, mend: str) -> None:
    """Raises DatasetError that names the first file that is not as it was."""
    old = {name: tuple(told) for name, told in json.loads(before).items()}
    for name in sorted({*old, *now}):
        if old.get(name) == now.get(name):
            continue
        what = "is new" if name not in old else "is gone" if name not in now else "was changed"
        place = path / name if path.is_dir() or Path(name).is_absolute() else path
        raise DatasetError(f"{place} {what} {when}: the mix would be of neither state", hint=mend)
