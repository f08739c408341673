"""Reading one source once, in any process: what was read before is passed over."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from orchard_core.datasets.mix.crediting import credit_places
from orchard_core.datasets.mix.files import Stamp, as_text, stamp, unchanged
from orchard_core.datasets.mix.index import Index, State
from orchard_core.datasets.mix.recipe import MixRecipe, MixSource
from orchard_core.errors import DatasetError, DatasetLocked

_PATIENCE_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """What there is to read, and where it goes."""

    number: int
    """The source's place in the recipe."""
    source: MixSource
    """Where rows come from."""
    recipe: MixRecipe
    """For its filters."""
    work: Path
    """The mix's work directory."""
    keep: bool = True
    """Rows are kept, not only counted."""

    @property
    def index(self) -> Path:
        """Facts of its rows."""
        return self.work / f"source-{self.number}.sqlite"

    @property
    def spool(self) -> Path:
        """Its rows."""
        return self.work / f"source-{self.number}.rows"

    @property
    def path(self) -> Path:
        """The source's."""
        return Path(self.source.path)

    @property
    def mend(self) -> str:
        """What to do when the source is not as it was."""
        return f"put it back as it was, or remove {self.work} to start anew"


def scan(job: Scan, tell: Callable[[int, int], None] = lambda rows, size: None) -> State:
    """Read what was not read yet. Raises DatasetCorrupt, DatasetError, DatasetNotFound, StoreError, and what
    reading the source raises."""
    try:
        return _scan(job, tell)
    except OSError as error:
        raise DatasetError(
            f"source {job.source.name}: {error.filename or job.path}: {error.strerror or error}",
            hint="see who may read it, and run the command again: it goes on",
        ) from error


def _scan(job: Scan, tell: Callable[[int, int], None]) -> State:
    from orchard_core.datasets.mix.reader import Reader

    with ExitStack() as stack:
        stack.enter_context(_alone(job.index.with_suffix(".lock")))
        boot = _boot()
        index = _index(job, boot)
        stack.callback(index.close)
        state, files = index.state(), stamps(job)
        if state.files:
            unchanged(state.files, files, job.path, when="since this mix began", mend=job.mend)
        if state.done:
            tell(state.read, 0)
            return state
        spool = stack.enter_context(job.spool.open("ab", buffering=0))
        spool.truncate(state.spooled)
        state = Reader(job, index, spool, replace(state, files=as_text(files), boot=boot), tell).run()
        unchanged(state.files, stamps(job), job.path, when="while it was read", mend=job.mend)
        state = replace(state, done=True)
        index.add((), (), (), state)
        return state


def _index(job: Scan, boot: str) -> Index:
    """The source's index, begun anew where the machine was started since: rows are not synced to the disk."""
    index = Index(job.index)
    if index.state().boot not in {"", boot}:
        index.close()
        for path in job.work.glob(f"{job.index.name}*"):
            path.unlink()
        index = Index(job.index)
    return index


def _boot() -> str:
    """Which start of the machine this is; empty where the system does not say."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def stamps(job: Scan) -> Stamp:
    """Of the source, and of the credit that is put on it."""
    found = stamp(job.path)
    for place in credit_places(job.source):
        found |= {str(place / name): told for name, told in stamp(place).items() if name != "lock"}
    return found


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Wait for a reader that outlived the command it belonged to: it ends by itself soon."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        give_up = time.monotonic() + _PATIENCE_S
        while not _locked(fd):
            if time.monotonic() > give_up:
                raise DatasetLocked(
                    f"{path.parent} is still being written by another process",
                    hint="wait for it to end, or choose another --out",
                )
            time.sleep(0.05)
        yield
    finally:
        os.close(fd)


def _locked(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
