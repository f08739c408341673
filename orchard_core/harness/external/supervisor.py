"""Runs one program and leaves nothing of it behind, whoever dies first.

A script of its own, `python -I -S supervisor.py DIRECTORY PROGRAM ...`, with the standard library only, so
that it starts in milliseconds. Its input is a pipe whose other end only the driver holds. When that closes,
because the driver wants so or was killed, everything that the program started is ended, daemons as well, and
DIRECTORY is removed. When the program ends by itself, what it left running is ended, and its exit code passed
on, as 128 + n for signal n.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import shutil
import signal
import sys
import time

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PATIENCE_S = 10.0
_REAP_EVERY_MS = 1000


def main(directory: str, *argv: str) -> int:
    """The exit code."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    program = _started(argv)
    if _ends_by_itself(program):
        code = os.waitstatus_to_exitcode(os.waitpid(program, 0)[1])
        end_all()
        return code if code >= 0 else 128 - code
    end_all()
    shutil.rmtree(directory, ignore_errors=True)
    return 128 + signal.SIGKILL


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None).prctl(option, *(ctypes.c_ulong(number) for number in (value, 0, 0, 0)))


def _started(argv: tuple[str, ...]) -> int:
    """The program's process: a session of its own, no input, dead at the latest when we are."""
    program = os.fork()
    if program:
        return program
    try:
        os.setsid()
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.execvp(argv[0], argv)  # noqa: S606 - argv, no shell
    except OSError as error:
        os.write(2, f"{argv[0]} cannot be started: {error.strerror}\n".encode())
    finally:
        os._exit(127)


def _ends_by_itself(program: int) -> bool:
    """Wait for its end, or for that of the driver; False for the latter."""
    poll = select.poll()
    handle = os.pidfd_open(program)
    poll.register(handle, select.POLLIN)
    poll.register(0, select.POLLIN | select.POLLHUP)
    while True:
        ready = {descriptor for descriptor, _ in poll.poll(_REAP_EVERY_MS)}
        if 0 in ready:
            return False
        if handle in ready:
            return True
        _reap_orphans(program)


def _reap_orphans(program: int) -> None:
    while (seen := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)) and seen.si_pid != program:
        os.waitpid(seen.si_pid, 0)


def end_all() -> None:
    """Kill every descendant until none is left. Stopped first, none of them can fork away meanwhile."""
    deadline = time.monotonic() + _PATIENCE_S
    while _has_children() and time.monotonic() < deadline:
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in descendants():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
        time.sleep(0.002)


def _has_children() -> bool:
    """Whether any is left, after the dead were collected."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def descendants() -> list[int]:
    """Our children, theirs, and so on; daemons too, for who loses its parent becomes a child of ours."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 - a script that starts fast
        if name.isdecimal():
            with contextlib.suppress(OSError, ValueError):
                children.setdefault(_parent(name), []).append(int(name))
    found = [os.getpid()]
    for pid in found:
        found += children.get(pid, [])
    return found[1:]


def _parent(pid: str) -> int:
    with open(f"/proc/{pid}/stat", "rb") as stat:  # noqa: PTH123 - see above
        return int(stat.read().rpartition(b")")[2].split()[1])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
