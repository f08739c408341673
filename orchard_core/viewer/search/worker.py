"""The process that makes indexes: `python -m orchard_core.viewer.search.worker CACHE PATH...`.

It is a process of its own so that pages stay quick, runs when nothing else wants the processor, and ends when
its standard input is closed: with the viewer, however that dies.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import sys
import threading
from pathlib import Path

from orchard_core.errors import OrchardError
from orchard_core.viewer.search.place import index_path
from orchard_core.viewer.search.writing import bring_up_to_date
from orchard_core.viewer.sources.contract import Source
from orchard_core.viewer.sources.shelf import Shelf

_PAUSE_S = 5.0


def main() -> int:
    """Until the viewer is gone."""
    gone = threading.Event()
    threading.Thread(target=_wait_for_end, args=(gone,), daemon=True).start()
    os.nice(10)
    try:
        cache = Path(sys.argv[1])
        shelf = Shelf.open([Path(name) for name in sys.argv[2:]])
        while not gone.is_set():
            for source in shelf.every():
                if source.kind != "matrix" and not gone.is_set():
                    _one(source, cache, gone)
            gone.wait(_PAUSE_S)
    except (OrchardError, OSError, sqlite3.Error):
        return 1  # the pages say that there is no index
    return 0


def _one(source: Source, cache: Path, gone: threading.Event) -> None:
    """Two viewers of one run take turns."""
    path = index_path(source.root, cache)
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with path.with_suffix(".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        bring_up_to_date(source, cache, going_on=lambda: not gone.is_set())


def _wait_for_end(gone: threading.Event) -> None:
    sys.stdin.buffer.read()
    gone.set()
    threading.Timer(5.0, os._exit, (0,)).start()


if __name__ == "__main__":
    sys.exit(main())
