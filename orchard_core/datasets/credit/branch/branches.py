"""`branches.jsonl`: every continuation that was run, a line each, beside the credits.

A line is plain JSON that ends in a CRC-32 over what stands before it, as in `credits.jsonl`: bad lines with
nothing valid after them are a torn tail and are cut, a bad line before a valid one is damage.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError

from orchard_core.errors import DatasetCorrupt, DatasetError
from orchard_core.rollout.branching.branch import BRANCH_VERSION, Branch
from orchard_core.rollout.store.files import Appender, DiskFiles, Files
from orchard_core.rollout.text import storable_tree
from orchard_core.types.rollout import Attribution

BRANCHES_NAME = "branches.jsonl"
_CRC = len(b',"crc":"00000000"}')
_VERSION = re.compile(rb'\{"schema_version":(\d{1,9}),')


class BranchLog:
    """Continuations of one directory of credits. One process writes, as the directory is locked."""

    def __init__(self, directory: Path, *, files: Files | None = None) -> None:
        """Opens it, after cutting a torn tail. Raises DatasetCorrupt, DatasetError."""
        files = files or DiskFiles()
        files.make_dir(directory)
        path = directory / BRANCHES_NAME
        self._done: dict[tuple[str, str], dict[tuple[int, int], Branch]] = {}
        end = 0
        for branch, end in _scan(path):  # noqa: B007 - the last one counts
            self._note(branch)
        self._lines: Appender = files.append(path)
        files.sync_dir(directory)
        if self._lines.size > end:
            self._lines.truncate(end)
            self._lines.sync()

    def of(self, rollout: str, origin: str) -> dict[tuple[int, int], Branch]:
        """Those of one recorded rollout by (turn, number), whole rollouts left out. What failed for want of a
        machine or a model is not among them, so that it is run again."""
        return dict(self._done.get((rollout, origin), {}))

    def add(self, branch: Branch) -> None:
        """Durable on return."""
        self._lines.write(_encode(branch))
        self._lines.sync()
        self._note(branch)

    def _note(self, branch: Branch) -> None:
        lost = branch.invalid and branch.attribution in (Attribution.INFRASTRUCTURE, Attribution.MODEL)
        done = self._done.setdefault((branch.rollout, branch.origin), {})
        if not lost:
            done[branch.turn, branch.number] = branch.model_copy(update={"record": None})

    def close(self) -> None:
        """Give the file back."""
        self._lines.close()


def read_branches(directory: str | Path) -> Iterator[Branch]:
    """Every continuation in a directory of credits, in the order they ended, up to a torn tail.

    Raises DatasetCorrupt, DatasetError.
    """
    for branch, _ in _scan(Path(directory) / BRANCHES_NAME):
        yield branch


def _encode(branch: Branch) -> bytes:
    try:
        body = branch.model_dump_json().encode()[:-1]
    except ValueError:  # a lone surrogate: pydantic's serialisation error is a ValueError
        clean = Branch.model_validate(storable_tree(branch.model_dump()))
        body = clean.model_dump_json().encode()[:-1]
    return b'%s,"crc":"%08x"}\n' % (body, zlib.crc32(body))


def _scan(path: Path) -> Iterator[tuple[Branch, int]]:
    """Each branch and where its line ends."""
    if not path.exists():
        return
    offset, bad = 0, -1
    with path.open("rb") as stream:
        for row, line in enumerate(stream):
            offset += len(line)
            whole = line.endswith(b"\n") and line[-_CRC - 1 : -1] == b',"crc":"%08x"}' % zlib.crc32(
                line[: -_CRC - 1]
            )
            if not whole:
                bad = row if bad < 0 else bad
            elif bad >= 0:
                raise DatasetCorrupt(
                    "the line is damaged", path=str(path), row=bad, hint="restore it from a copy"
                )
            else:
                yield _decode(line, path, row), offset


def _decode(line: bytes, path: Path, row: int) -> Branch:
    found = _VERSION.match(line)
    if found is not None and int(found[1]) > BRANCH_VERSION:
        raise DatasetError(
            f"{path}, row {row}: written by a newer Orchard (this one reads version {BRANCH_VERSION})",
            hint="pip install --upgrade orchard-core",
        )
    try:
        return Branch.model_validate_json(line[: -_CRC - 1] + b"}")
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise DatasetCorrupt(
            first["msg"], path=str(path), row=row, field=".".join(map(str, first["loc"]))
        ) from None
