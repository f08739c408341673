"""Stopping everything in a sandbox for a moment, so that its files are those of one point in time.

By SIGSTOP, which needs no privilege. Parents are stopped before their children and go on after them, so that
no shell takes a child for stopped by its user. What was stopped already stays so; a process under a debugger
is left to the debugger, which stands.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

_PATIENCE_S = 0.25
_PAUSE_S = 0.0005
_ROUNDS_MAX = 50
_STANDING = frozenset("TtZXx")


@dataclass(slots=True, kw_only=True)
class Stillness:
    """The processes that stand because of us."""

    descriptors: list[int] = field(default_factory=list)
    """One a process, in the order in which they were stopped."""
    complete: bool = True
    """False: something could not be stopped in time and may have gone on writing."""

    def end(self) -> None:
        """Let them go on; repeated calls are fine."""
        while self.descriptors:
            descriptor = self.descriptors.pop()
            _signal(descriptor, signal.SIGCONT)
            os.close(descriptor)


def still(root: int, root_descriptor: int) -> Stillness:
    """Stop a process, whose descriptor is given, and all below it. Blocking, about a millisecond."""
    found = Stillness()
    if not _signal(root_descriptor, signal.SIGSTOP):
        return found
    found.descriptors.append(os.dup(root_descriptor))
    found.complete = _all_stand([root])
    seen = {root}
    for _ in range(_ROUNDS_MAX):
        new = [pid for pid in _family(root) if pid not in seen]
        if not new:
            return found
        seen.update(new)
        stopped = [pid for pid in new if _stop(pid, seen, found.descriptors)]
        found.complete &= _all_stand(stopped)
    found.complete = False
    return found


def _family(root: int) -> Iterator[int]:
    """The process and its descendants, parents first."""
    waiting = [root]
    while waiting:
        pid = waiting.pop()
        yield pid
        waiting += _children(pid)


def _children(pid: int) -> list[int]:
    """Children of all its threads; none when it has gone."""
    try:
        texts = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/children")]
    except OSError:
        return []
    return [int(word) for text in texts for word in text.split()]


def _stop(pid: int, family: set[int], descriptors: list[int]) -> bool:
    """Whether it stands because of us. Its descriptor is opened first: the number cannot become another's
    after that, and what is no child of the family had become another's before."""
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:
        return False
    status = _status(pid)
    stranger = int(status.get("PPid", "0")) not in family
    spared = status.get("TracerPid", "0") != "0" or status.get("State", "Z")[0] in _STANDING
    if stranger or spared or not _signal(descriptor, signal.SIGSTOP):
        os.close(descriptor)
        return False
    descriptors.append(descriptor)
    return True


def _all_stand(pids: list[int]) -> bool:
    deadline = time.monotonic() + _PATIENCE_S
    for pid in pids:
        while not _stands(pid):
            if time.monotonic() > deadline:
                return False
            time.sleep(_PAUSE_S)
    return True


def _stands(pid: int) -> bool:
    """Every thread does, or it has gone."""
    try:
        tasks = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/stat")]
    except OSError:
        return True
    return all(text.rpartition(")")[2].split()[0] in _STANDING for text in tasks)


def _status(pid: int) -> dict[str, str]:
    try:
        lines = Path(f"/proc/{pid}/status").read_text(errors="replace").splitlines()
    except OSError:
        return {}
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def _signal(descriptor: int, number: signal.Signals) -> bool:
    try:
        signal.pidfd_send_signal(descriptor, number)
    except OSError:
        return False
    return True
