"""`branches.jsonl`: every continuation that was run, a line each, beside the credits and checked alike."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from orchard_core.datasets.credit.checked import append_after, decode, encode, scan
from orchard_core.datasets.credit.head import BRANCHES_NAME
from orchard_core.rollout.branching.branch import BRANCH_VERSION, Branch
from orchard_core.rollout.store.files import Appender, DiskFiles, Files


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
        self._lines: Appender = append_after(end, path, files)

    def of(self, rollout: str, origin: str) -> dict[tuple[int, int], Branch]:
        """Those of one recorded rollout by (turn, number), whole rollouts left out. What failed for want of a
        machine or a model is not among them, so that it is run again."""
        return dict(self._done.get((rollout, origin), {}))

    def add(self, branch: Branch) -> None:
        """Durable on return."""
        self._lines.write(encode(branch))
        self._lines.sync()
        self._note(branch)

    def _note(self, branch: Branch) -> None:
        done = self._done.setdefault((branch.rollout, branch.origin), {})
        if not branch.lost:
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


def _scan(path: Path) -> Iterator[tuple[Branch, int]]:
    """Each branch and where its line ends."""
    for line, place in scan(path, newest=BRANCH_VERSION):
        yield decode(line, Branch, path=path, row=place.row), place.end
