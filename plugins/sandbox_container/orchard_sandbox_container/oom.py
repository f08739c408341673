"""Whether the kernel killed a process for memory, by the kernel's own log: not every engine notices."""

from __future__ import annotations

import os
import re

_RECORDS_MAX = 50_000


def killed_for_memory(pid: int) -> bool:
    """The log says so. Blocking, some milliseconds; False where the log cannot be read."""
    wanted = re.compile(rb"[Mm]emory.*Killed process %d[ ,]" % pid)
    try:
        log = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return any(wanted.search(record) for record in _records(log))
    finally:
        os.close(log)


def _records(log: int) -> list[bytes]:
    found: list[bytes] = []
    while len(found) < _RECORDS_MAX:
        try:
            found.append(os.read(log, 8192))
        except BrokenPipeError:  # older records were overwritten meanwhile
            continue
        except OSError:
            break
    return found
