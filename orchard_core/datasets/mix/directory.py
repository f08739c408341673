"""The output directory while a mix is made: held by one process, resumed by the same command."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from orchard_core.datasets.mix.refusals import HOPELESS
from orchard_core.datasets.store.manifest import MANIFEST_NAME, PARTIAL
from orchard_core.datasets.store.taken import refuse_links
from orchard_core.errors import DatasetExists, DatasetLocked, RunLocked, StoreError
from orchard_core.rollout.store.files import DiskFiles, Lock, write_whole

WORK = ".mix"
"""What was read so far, and the plan; removed at the end."""
_DONE = f"{WORK}-done"
_RECIPE, _LOCK = "recipe.json", "lock"


@dataclass(frozen=True, slots=True, kw_only=True)
class MixDirectory:
    """A directory that holds, or is to hold, the mix of one recipe."""

    root: Path
    """Where the dataset goes."""
    done: bool
    """The dataset is whole: only the work directory was left to remove."""

    @property
    def work(self) -> Path:
        """The work directory."""
        return self.root / WORK

    def clear(self) -> None:
        """Remove the work directory, the recipe last: what a kill leaves, the same command removes."""
        gone = self.root / _DONE
        self.work.rename(gone)
        with suppress(FileNotFoundError):  # another start of the same command found it, and has taken it over
            for path in gone.iterdir():
                if path.name != _RECIPE:
                    path.unlink()
            (gone / _RECIPE).unlink()
            gone.rmdir()


@contextmanager
def mix_directory(root: Path, recipe: bytes) -> Iterator[MixDirectory]:
    """Make it, or take it up again where the resolved recipe is the same.

    What was read is kept for the next start, but for errors that no other start can be without. Raises
    DatasetExists when something else lies there, such as the mix of another recipe, DatasetLocked and
    StoreError.
    """
    root = root.absolute()
    refuse_links(root, (WORK, _DONE, PARTIAL))
    _take_up_done(root, recipe)
    _refuse_taken(root)
    (root / WORK).mkdir(parents=True, exist_ok=True)
    lock = _lock(root)
    try:
        _refuse_taken(root)
        _same_recipe(root, recipe)
        whole = (root / MANIFEST_NAME).exists()
        if whole:
            shutil.rmtree(root / PARTIAL, ignore_errors=True)
        else:
            (root / PARTIAL).mkdir(exist_ok=True)  # the writer refuses a directory with anything else in it
        yield MixDirectory(root=root, done=whole)
    except HOPELESS:
        _forget(root)
        raise
    finally:
        lock.release()


def _take_up_done(root: Path, recipe: bytes) -> None:
    """What a kill at the very end left: this recipe's own is done, and left to clear; another's is litter."""
    done = root / _DONE
    if not done.is_dir():
        return
    if (done / _RECIPE).is_file() and (done / _RECIPE).read_bytes() == recipe:
        done.rename(root / WORK)
    else:
        shutil.rmtree(done)


def _forget(root: Path) -> None:
    """Remove what was read, and what is empty then."""
    shutil.rmtree(root / WORK)
    with suppress(OSError):  # there are shards in it, or other things
        (root / PARTIAL).rmdir()
        root.rmdir()


def _lock(root: Path) -> Lock:
    try:
        return DiskFiles().lock(root / WORK / _LOCK)
    except RunLocked as error:
        raise DatasetLocked(
            error.message.replace(f"/{WORK}", ""), hint="wait for it to end, or choose another --out"
        ) from None


def _refuse_taken(root: Path) -> None:
    if (root / WORK).is_dir():
        return
    if (root / MANIFEST_NAME).exists():
        raise DatasetExists(f"{root} holds a dataset already", hint="choose another --out")
    if root.exists() and not root.is_dir():
        raise DatasetExists(f"{root} is a file", hint="choose another --out")
    if root.is_dir() and any(root.iterdir()):
        raise DatasetExists(f"{root} is not empty", hint="choose another --out, or empty it")


def _same_recipe(root: Path, recipe: bytes) -> None:
    path = root / WORK / _RECIPE
    if not path.exists():
        try:
            write_whole(DiskFiles(), path, recipe)
        except OSError as error:
            raise StoreError(f"{path} cannot be written: {error.strerror}", hint="make room") from error
    elif path.read_bytes() != recipe:
        raise DatasetExists(
            f"{root} holds an unfinished mix of another recipe",
            hint=f"run the command it was begun with, choose another --out, or remove {root}",
        )
