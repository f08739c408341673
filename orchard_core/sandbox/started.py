"""A started command whose every use counts as use of its sandbox, and whose loss is told with its reason."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager

from orchard_core.sandbox.contract import Process
from orchard_core.types.sandbox import ExecResult, PtySize


class StartedProcess:
    """A Process around the agent's. See orchard_core.sandbox.contract."""

    def __init__(self, process: Process, call: Callable[..., AbstractAsyncContextManager[object]]) -> None:
        self._process = process
        self._call = call

    @property
    def id(self) -> str:
        """See Process."""
        return self._process.id

    def stdout(self) -> AsyncIterator[bytes]:
        """See Process."""
        return self._pieces(self._process.stdout())

    def stderr(self) -> AsyncIterator[bytes]:
        """See Process."""
        return self._pieces(self._process.stderr())

    async def _pieces(self, source: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async with self._call(cut=False):
            async for piece in source:
                yield piece

    async def write(self, data: bytes) -> None:
        """See Process."""
        async with self._call():
            await self._process.write(data)

    async def close_stdin(self) -> None:
        """See Process."""
        async with self._call():
            await self._process.close_stdin()

    async def signal(self, number: int) -> None:
        """See Process."""
        async with self._call():
            await self._process.signal(number)

    async def kill(self) -> None:
        """See Process."""
        async with self._call():
            await self._process.kill()

    async def resize(self, size: PtySize) -> None:
        """See Process."""
        async with self._call():
            await self._process.resize(size)

    async def wait(self, timeout: float | None = None) -> ExecResult:
        """See Process."""
        async with self._call():
            return await self._process.wait(timeout)
