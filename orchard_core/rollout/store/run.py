"""Reading a run directory, while it is being written too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from orchard_core.errors import RecordCorrupt, RunNotFound
from orchard_core.rollout.config import Difference, RunConfig, differences
from orchard_core.rollout.store.blobs import BlobReader
from orchard_core.rollout.store.commit import shard_path
from orchard_core.rollout.store.entry import Finished, Planned
from orchard_core.rollout.store.frame import unpack
from orchard_core.rollout.store.journal import JournalReader
from orchard_core.rollout.store.record import parse_record
from orchard_core.rollout.store.state import RunState
from orchard_core.types.rollout import Rollout

CONFIG_NAME = "run.json"
PLAN_NAME = "matrix.json"
"""Lies in the directory of a matrix, which is no run."""
_OF_DATASET = "manifest.json"


def read_config(root: Path) -> RunConfig:
    """The stored configuration. Raises RunNotFound, RecordCorrupt, StoreError for that of a newer Orchard."""
    try:
        text = (root / CONFIG_NAME).read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        if (root / PLAN_NAME).is_file():
            raise RunNotFound(f"{root} is a matrix", hint=f"name one of its runs, in {root}/cells/") from None
        if (root / _OF_DATASET).is_file():
            hint = "orchard data stats counts its rows, orchard view shows them"
            raise RunNotFound(f"{root} is a dataset, not a run", hint=hint) from None
        raise RunNotFound(f"there is no run at {root}", hint="orchard runs list") from None
    return parse_record(RunConfig, text, path=root / CONFIG_NAME)


def load_rollout(root: Path, entry: Finished) -> Rollout:
    """The rollout a line points at. Raises RecordCorrupt."""
    path = shard_path(root, entry.shard)
    try:
        with path.open("rb") as stream:
            stream.seek(entry.offset)
            frame = stream.read(entry.length)
    except FileNotFoundError:
        raise RecordCorrupt(f"{path} is gone", hint="restore it from a copy") from None
    except OSError as error:
        raise RecordCorrupt(f"{path} cannot be read: {error.strerror}", hint="see who may read it") from error
    return unpack(frame, where=f"{path} at byte {entry.offset} (rollout {entry.id})")


class Run:
    """One run directory. Nothing is held but the journal's short lines: rollouts are read one by one."""

    def __init__(self, root: Path) -> None:
        self.root = root
        """The directory."""
        self.config = read_config(root)
        """What the run was asked to do."""
        self.blobs = BlobReader(root / "blobs")
        """Artifacts by hash."""

    def state(self) -> RunState:
        """What the journal says now."""
        return RunState.replay(JournalReader(self.root / "journal.jsonl").entries())

    def planned(self) -> list[Planned]:
        """Every rollout the run consists of, in order."""
        return list(self.state().planned.values())

    def finished(self) -> list[Finished]:
        """One line for each finished rollout, in the order of the plan; no shard is read."""
        state = self.state()
        return [state.finished[name] for name in state.planned if name in state.finished]

    def missing(self) -> list[Planned]:
        """What a resumed run has yet to do, failures that may be repeated left aside."""
        return self.state().missing()

    def rollouts(self, *, task: str | None = None) -> Iterator[Rollout]:
        """Every finished rollout once, in the order they were finished, read as it is asked for.

        Raises RecordCorrupt for a damaged record; those before it have been given.
        """
        for entry in list(self.state().finished.values()):
            if task is None or entry.task == task:
                yield self.load(entry)

    def __iter__(self) -> Iterator[Rollout]:
        return self.rollouts()

    def rollout(self, name: str) -> Rollout:
        """One rollout by its id or an unambiguous beginning of it. Raises RunNotFound."""
        found = [entry for entry in self.state().finished.values() if entry.id.startswith(name)]
        if len(found) != 1:
            what = "no finished rollout has" if not found else f"{len(found)} finished rollouts have"
            raise RunNotFound(f"{what} the id {name!r} in {self.root}", hint=f"orchard report {self.root}")
        return self.load(found[0])

    def history(self, name: str) -> list[Finished]:
        """Every line about a rollout that was finished, the newest last: each try, and each time it was
        graded again. `load` gives the record of any of them."""
        entries = JournalReader(self.root / "journal.jsonl").entries()
        return [entry for entry in entries if isinstance(entry, Finished) and entry.id == name]

    def load(self, entry: Finished) -> Rollout:
        """The rollout a line points at. Raises RecordCorrupt."""
        return load_rollout(self.root, entry)

    def differences(self, other: Run) -> list[Difference]:
        """Fields in which the configurations differ; `orchard_core.evals.compare` looks at tasks too."""
        return differences(self.config, other.config)

    def damaged(self) -> list[str]:
        """One line for every record whose checksum does not match; reads everything."""
        bad: list[str] = []
        for entry in self.finished():
            try:
                self.load(entry)
            except RecordCorrupt as error:
                bad.append(error.message)
        return bad


def open_run(path: str | Path) -> Run:
    """Open a run directory to read it. Raises RunNotFound."""
    return Run(Path(path))
