"""What may lie where a dataset is to be written, looked at before anything is made there."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from orchard_core.errors import ConfigError, DatasetExists


def refuse_links(root: Path, names: Iterable[str]) -> None:
    """Raises DatasetExists for a directory that is a link to nothing, or in which one of the names that we
    write to and remove is a link: what it leads to is somebody else's."""
    for path in (root / name for name in names):
        if path.is_symlink():
            raise DatasetExists(f"{path} is a link, and is not followed", hint="choose another --out")
    if root.is_symlink() and not root.exists():
        raise DatasetExists(f"{root} is a link to nothing", hint="choose another --out")


def must_lie_apart(out: Path, source: Path) -> None:
    """Raises ConfigError for a dataset that would lie inside of what it is made from: its own files would be
    read as rows, by this command or by the next."""
    if source.is_dir() and out.resolve().is_relative_to(source.resolve()):
        raise ConfigError(f"{out} lies inside of {source}, which is read", hint="choose another --out")
