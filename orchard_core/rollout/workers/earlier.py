"""What the workers of an earlier start have left in a run: it is taken over before anybody goes on."""

from __future__ import annotations

import asyncio
import shutil
import time
from pathlib import Path

from orchard_core.errors import RunLocked
from orchard_core.rollout.share import FOLDER
from orchard_core.rollout.store.files import DiskFiles, Lock
from orchard_core.rollout.workers.collector import Collector

LOOK_S = 0.3
LAST_S = 60.0
"""Workers that have lost their coordinator end by themselves within this time."""


def parts_of(root: Path) -> list[Path]:
    """The run directories of a run's workers, in order."""
    return sorted(path.parent for path in (root / FOLDER).glob("[0-9]*/journal.jsonl"))


async def settle_earlier(collector: Collector, root: Path) -> None:
    """Take over what is there, once its writers have ended. The caller holds the lock of `root`. Raises
    RunLocked when one does not end, and StoreError."""
    for part in parts_of(root):
        lock = await _ended(part)
        try:
            await collector.collect([part])
            await asyncio.to_thread(put_away, part, damaged=part in collector.damaged)
            collector.forget(part)
        finally:
            lock.release()


def put_away(part: Path, *, damaged: bool) -> None:
    """Remove a part of which all is in the run; one with damage is kept beside, for its owner to look at."""
    if damaged:
        part.rename(part.with_name(f"damaged-{part.name}-{time.time_ns()}"))
    else:
        shutil.rmtree(part)


async def until_free(part: Path) -> None:
    """Until no other process writes it, as one that is just being ended does. Raises RunLocked."""
    if part.exists():
        (await _ended(part)).release()


async def _ended(part: Path) -> Lock:
    """The lock of its directory, when no worker writes it any more. Raises RunLocked."""
    files, end = DiskFiles(), time.monotonic() + LAST_S
    while True:
        try:
            return files.lock(part / "lock")
        except RunLocked as error:
            if time.monotonic() > end:
                raise RunLocked(
                    f"a worker of an earlier start still works in {part}",
                    hint="wait for it to end, or end it (on Kubernetes: --on kubernetes does that)",
                ) from error
        await asyncio.sleep(LOOK_S)
