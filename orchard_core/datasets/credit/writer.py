"""Writing a directory of credits, one line at a time, by one process at a time."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Self

from orchard_core.datasets.credit.checked import append_after, encode
from orchard_core.datasets.credit.head import BRANCHES_NAME, HEAD_NAME, LINES_NAME, CreditHead, read_head
from orchard_core.datasets.credit.line import scan
from orchard_core.datasets.credit.store import CreditLines
from orchard_core.errors import ConfigError, DatasetCorrupt, DatasetLocked, RunLocked
from orchard_core.rollout.config import Difference
from orchard_core.rollout.store.files import Appender, DiskFiles, Files, Lock, write_whole
from orchard_core.types.credit import Credit


class CreditWriter:
    """A directory of credits, new or taken up again. Use it as a context manager."""

    def __init__(self, root: Path, *, lines: Appender, lock: Lock) -> None:
        """Made by `open`."""
        self.root = root
        self._lines = lines
        self._lock: Lock | None = lock
        self.before = CreditLines(root / LINES_NAME)
        """What was there when it was opened."""

    @classmethod
    def open(cls, root: Path, head: CreditHead, *, files: Files | None = None) -> Self:
        """Make the directory, or go on in it after cutting a torn tail.

        Raises DatasetLocked while another process writes there, ConfigError when it holds credits of other
        settings, and DatasetCorrupt.
        """
        files = files or DiskFiles()
        files.make_dir(root)
        try:
            lock = files.lock(root / "lock")
        except RunLocked as error:
            raise DatasetLocked(error.message, hint="wait for it to end, or choose another --name") from None
        try:
            _settle_head(root, head, files)
            return cls(root, lines=_lines(root / LINES_NAME, files), lock=lock)
        except BaseException:
            lock.release()
            raise

    def add(self, credit: Credit) -> None:
        """Durable on return. A later line of the same rollout replaces an earlier one."""
        self._lines.write(encode(credit))
        self._lines.sync()

    def close(self) -> None:
        """Let others write. May be repeated."""
        if self._lock is not None:
            self._lines.close()
            self._lock.release()
            self._lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def check_same(root: Path, head: CreditHead) -> None:
    """Raises ConfigError, saying what differs, when the directory holds credits of other settings, and
    DatasetCorrupt when it does not say of which."""
    if not (root / HEAD_NAME).exists():
        if lines := [name for name in (LINES_NAME, BRANCHES_NAME) if (root / name).exists()]:
            raise DatasetCorrupt(
                "it is missing, so nothing says by which settings the lines beside it were made",
                path=str(root / HEAD_NAME),
                hint=f"restore it, remove {lines[0]} as well, or choose another --name",
            )
        return
    if found := read_head(root).differences(head):
        raise ConfigError(
            f"{root} holds credits of other settings: {_told(found)}",
            hint="choose another --name to keep both, or give the settings it was begun with",
        )


def _settle_head(root: Path, head: CreditHead, files: Files) -> None:
    check_same(root, head)
    if not (root / HEAD_NAME).exists():
        write_whole(files, root / HEAD_NAME, head.model_dump_json(indent=2).encode() + b"\n")


def _lines(path: Path, files: Files) -> Appender:
    end = max((place.end for _, place in scan(path)), default=0)
    return append_after(end, path, files)


def _told(found: Iterable[Difference]) -> str:
    return "; ".join(f"{item.field} is {item.left!r} there, {item.right!r} is asked for" for item in found)
