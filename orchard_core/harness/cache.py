"""Where programs and interpreters that harnesses need are kept, and who may make one."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from orchard_core.errors import ConfigError


def program_cache() -> Path:
    """`orchard/` below the user's cache directory; not made here."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "orchard"


@contextmanager
def making(place: Path) -> Iterator[int]:
    """One process at a time makes what is to lie at `place`; the lock lies beside it.

    Gives the lock's descriptor: a child that holds it too holds the others off until it has ended, when its
    parent is killed. A death lets the lock go. Raises ConfigError when nothing can be written there.
    """
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with place.with_name(f"{place.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield lock.fileno()
    except OSError as error:
        raise ConfigError(
            f"{place} cannot be made: {error.strerror or error}",
            hint="free some room, or set XDG_CACHE_HOME to a directory that you may write",
        ) from error
