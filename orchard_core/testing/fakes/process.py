"""A command run as a plain subprocess of this process, its output spooled to files."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path

from orchard_core.errors import ExecError
from orchard_core.types.sandbox import ExecResult, PtySize

_POLL_S = 0.02
_CHUNK = 1 << 16


def kill_marked(marker: str) -> int:
    """SIGKILL every process whose environment carries `marker` ("NAME=VALUE"); returns how many there were.

    The environment is inherited, so a child that left its session and its parent is found all the same.
    """
    found = marked(marker)
    for pid in found:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    return len(found)


def marked(marker: str) -> list[int]:
    """Ids of the live processes whose environment carries `marker`, and of their descendants."""
    wanted = marker.encode()
    found: set[int] = set()
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            state, parent = (entry / "stat").read_bytes().rpartition(b")")[2].split()[:2]
            if state == b"Z":
                continue
            parents[int(entry.name)] = int(parent)
            if wanted in (entry / "environ").read_bytes().split(b"\0"):
                found.add(int(entry.name))
        except OSError:
            continue
    return sorted(pid for pid in parents if _descends(pid, parents, found))


def _descends(pid: int, parents: dict[int, int], found: set[int]) -> bool:
    while pid and pid not in found:
        pid = parents.get(pid, 0)
    return pid in found


async def end_marked(marker: str) -> None:
    """Kill until none is left: a process may fork between the look and the kill."""
    while kill_marked(marker):
        await asyncio.sleep(_POLL_S)


class FakeProcess:
    """Honours `orchard_core.Process`. Made by `FakeSandbox.start`."""

    def __init__(
        self,
        child: asyncio.subprocess.Process,
        *,
        marker: str,
        spool: Path,
        timeout: float | None,
        output_limit: int,
    ) -> None:
        self._child = child
        self._marker = marker
        self._spool = spool
        self._timeout = timeout
        self._limit = output_limit
        self._started = time.monotonic()
        self._end = asyncio.create_task(self._finish())

    @property
    def id(self) -> str:
        """Name of the run's spool directory, which is unique."""
        return self._spool.name

    def stdout(self) -> AsyncIterator[bytes]:
        """See Process."""
        return self._tail(self._spool / "stdout")

    def stderr(self) -> AsyncIterator[bytes]:
        """See Process."""
        return self._tail(self._spool / "stderr")

    async def write(self, data: bytes) -> None:
        """See Process."""
        stdin = self._child.stdin
        if stdin is None or stdin.is_closing():
            raise ExecError("standard input of the command is closed", hint="start it anew to feed it")
        try:
            stdin.write(data)
            await stdin.drain()
        except (BrokenPipeError, ConnectionResetError) as error:
            raise ExecError("the command no longer reads its standard input") from error

    async def close_stdin(self) -> None:
        """See Process."""
        if self._child.stdin is not None:
            self._child.stdin.close()

    async def signal(self, number: int) -> None:
        """See Process."""
        if self._child.returncode is None:
            try:
                os.killpg(self._child.pid, number)
            except ProcessLookupError:
                return

    async def resize(self, size: PtySize) -> None:
        """See Process; there never is a terminal here."""
        raise ExecError("the command has no terminal to resize", hint="start it with pty=PtySize()")

    async def wait(self, timeout: float | None = None) -> ExecResult:
        """See Process."""
        done, _ = await asyncio.wait({self._end}, timeout=timeout)
        if not done:
            raise TimeoutError(f"the command still runs after {timeout:g} s")
        return self._end.result()

    async def kill(self) -> None:
        """End the command and everything it started."""
        await end_marked(self._marker)
        await self._end

    async def _finish(self) -> ExecResult:
        timed_out = False
        try:
            await asyncio.wait_for(self._child.wait(), self._timeout)
        except TimeoutError:
            timed_out = True
            await end_marked(self._marker)
            await self._child.wait()
        if self._child.stdin is not None:
            self._child.stdin.close()
        return self._result(timed_out)

    def _result(self, timed_out: bool) -> ExecResult:
        code = self._child.returncode or 0
        out, out_size = head_and_tail(self._spool / "stdout", self._limit)
        err, err_size = head_and_tail(self._spool / "stderr", self._limit)
        return ExecResult(
            exit_code=128 - code if code < 0 else code,
            stdout=out,
            stderr=err,
            stdout_size=out_size,
            stderr_size=err_size,
            stdout_truncated=out_size > len(out),
            stderr_truncated=err_size > len(err),
            timed_out=timed_out,
            limit_s=self._timeout if timed_out else None,
            duration_s=time.monotonic() - self._started,
        )

    async def _tail(self, path: Path) -> AsyncIterator[bytes]:
        with path.open("rb") as file:
            while True:
                quiet = self._end.done() and not marked(self._marker)
                if chunk := file.read(_CHUNK):
                    yield chunk
                elif quiet:
                    return
                else:
                    await asyncio.sleep(_POLL_S)


def head_and_tail(path: Path, limit: int) -> tuple[bytes, int]:
    """The file's content, without its middle when it is longer than `limit`, and its true size."""
    size = path.stat().st_size
    with path.open("rb") as file:
        if size <= limit:
            return file.read(size), size
        head = file.read(limit // 2)
        file.seek(size - (limit - limit // 2))
        return head + file.read(limit - limit // 2), size
