"""The directory of a dataset while it is written: held by one process, and what is durable in it so far."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

from pydantic import Field, ValidationError

from orchard_core.datasets.store.manifest import DATA, MANIFEST_NAME, PARTIAL
from orchard_core.datasets.store.taken import refuse_links
from orchard_core.errors import ConfigError, DatasetCorrupt, DatasetExists, DatasetLocked, RunLocked
from orchard_core.rollout.store.files import DiskFiles, Lock, write_whole
from orchard_core.types.base import Record

_STATE, _LOCK = "shards.json", "lock"


class Whole(Record):
    """A shard that is on the disk."""

    split: str = Field(pattern=r"^[A-Za-z0-9_]{1,64}$")
    """Its split; part of the file's name."""
    number: int = Field(ge=0)
    """Its place among the split's shards, from 0."""
    rows: int = Field(ge=0)
    """Its rows."""
    bytes: int = Field(ge=0)
    """Its size."""
    sha256: str
    """Its hash."""
    tokens: int = 0
    """Sum of its rows' `token_count`."""
    turns: int = 0
    """Assistant messages."""
    trained_turns: int = 0
    """Those with mask 1."""

    @property
    def name(self) -> str:
        """Its file's name while the number of shards is not known."""
        return f"{self.split}-{self.number:05d}.parquet"

    def final(self, count: int) -> str:
        """Its place in the dataset, of a split of so many shards."""
        return f"{DATA}/{self.split}-{self.number:05d}-of-{count:05d}.parquet"


class State(Record):
    """What is in `.partial/shards.json`."""

    plan: str = ""
    """What the writer was asked to write: a digest that whoever resumes must name again."""
    shards: tuple[Whole, ...] = ()
    """In the order they became whole."""


class Partial:
    """Opened by one process at a time; the kernel lets go of it when that process dies."""

    def __init__(self, root: Path, *, state: State, lock: Lock) -> None:
        self.root = root
        """The dataset's directory."""
        self.state = state
        """What is durable."""
        self._files = DiskFiles()
        self._lock = lock

    @classmethod
    def open(cls, root: Path, *, plan: str, resume: bool) -> Self:
        """Make it, or take it up again. Raises DatasetExists, DatasetLocked, ConfigError for another plan,
        and DatasetCorrupt."""
        _refuse_taken(root)
        files = DiskFiles()
        (root / PARTIAL).mkdir(parents=True, exist_ok=True)
        lock = _locked(files, root)
        try:
            _refuse_taken(root)
            held = _read_state(root / PARTIAL / _STATE)
            if held is not None and held.shards and not resume:
                raise DatasetExists(
                    f"{root} holds a dataset that was not written to its end",
                    hint="go on with it by DatasetWriter(..., resume=True), or choose another directory",
                )
            if held is not None and held.shards and held.plan != plan:
                raise ConfigError(
                    f"{root} was begun with another recipe or other sources",
                    hint="resume with what it was begun with, or choose another --out",
                )
            kept = held.shards if held is not None else ()
            opened = cls(root, state=State(plan=plan, shards=kept), lock=lock)
            opened._settle()
        except BaseException:
            lock.release()
            raise
        return opened

    def path(self, name: str) -> Path:
        """Where a shard lies while the dataset is not whole."""
        return self.root / PARTIAL / name

    def add(self, shard: Whole) -> None:
        """A shard is on the disk; from now on it survives anything."""
        self._files.sync_dir(self.root / PARTIAL)
        self.state = self.state.model_copy(update={"shards": (*self.state.shards, shard)})
        self._store()

    def publish(self, names: Sequence[tuple[Whole, str]], card: str, manifest: bytes) -> None:
        """Give the shards their names, and make the dataset be there by its manifest."""
        self._files.make_dir(self.root / DATA)
        for shard, name in names:
            self.path(shard.name).replace(self.root / name)
        self._files.sync_dir(self.root / DATA)
        write_whole(self._files, self.root / "README.md", card.encode())
        write_whole(self._files, self.root / MANIFEST_NAME, manifest)
        self._remove()
        self._lock.release()

    def leave(self) -> None:
        """Let others go on. Where nothing is durable nothing is left behind."""
        if not self.state.shards:
            self._remove()
            with suppress(OSError):  # it was there before, with other things in it
                self.root.rmdir()
        self._lock.release()

    def _settle(self) -> None:
        """What a writer that died left under other names is put back or removed."""
        for shard in self.state.shards:
            if not self.path(shard.name).exists():
                moved = list((self.root / DATA).glob(f"{shard.split}-{shard.number:05d}-of-*.parquet"))
                if len(moved) != 1:
                    raise DatasetCorrupt(
                        f"the shard {shard.name} is gone",
                        path=str(self.root / PARTIAL),
                        hint="choose another --out",
                    )
                moved[0].replace(self.path(shard.name))
        for stray in (self.root / PARTIAL).glob("*.tmp"):
            stray.unlink()
        self._store()

    def _store(self) -> None:
        write_whole(self._files, self.root / PARTIAL / _STATE, self.state.model_dump_json(indent=2).encode())

    def _remove(self) -> None:
        for path in (self.root / PARTIAL).iterdir():
            path.unlink()
        (self.root / PARTIAL).rmdir()


def _refuse_taken(root: Path) -> None:
    refuse_links(root, (PARTIAL, DATA))
    if (root / MANIFEST_NAME).exists():
        raise DatasetExists(f"{root} holds a dataset already", hint="choose another --out")
    if root.exists() and not root.is_dir():
        raise DatasetExists(f"{root} is a file", hint="choose another --out")
    if root.is_dir() and not (root / PARTIAL).is_dir() and any(root.iterdir()):
        raise DatasetExists(f"{root} is not empty", hint="choose another --out, or empty it")


def _locked(files: DiskFiles, root: Path) -> Lock:
    path = root / PARTIAL / _LOCK
    try:
        lock = files.lock(path)
    except RunLocked:
        raise DatasetLocked(
            f"{root} is being written by another process", hint="wait for it to end, or choose another --out"
        ) from None
    except FileNotFoundError:
        raise _won(root) from None
    if str(os.getpid()) != _holder(path):  # the directory was renewed between opening and locking
        lock.release()
        raise _won(root)
    return lock


def _won(root: Path) -> DatasetLocked:
    return DatasetLocked(f"{root} was just written by another process", hint="choose another --out")


def _holder(path: Path) -> str:
    try:
        return path.read_text()
    except FileNotFoundError:
        return ""


def _read_state(path: Path) -> State | None:
    try:
        return State.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValidationError as error:
        raise DatasetCorrupt(
            f"damaged: {error.errors()[0]['msg']}", path=str(path), hint="choose another --out"
        ) from None
