"""The synchronous face of a program on a terminal."""

from __future__ import annotations

from types import TracebackType

from orchard_env.client.loop import background_loop
from orchard_env.client.process import AsyncContainerProcess


class ContainerProcess:
    """A running program and its terminal; see AsyncContainerProcess. Any thread may call any method."""

    def __init__(self, process: AsyncContainerProcess) -> None:
        """Made by `SandboxInstance.exec(..., pty=True)`."""
        self._process = process

    @property
    def pid(self) -> int | None:
        """See AsyncContainerProcess."""
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """See AsyncContainerProcess."""
        return self._process.returncode

    def poll(self) -> int | None:
        """See AsyncContainerProcess."""
        return self._process.poll()

    def write_stdin(self, data: bytes | str) -> None:
        """See AsyncContainerProcess."""
        background_loop().run(self._process.write_stdin(data))

    def read(self, timeout: float | None = None) -> bytes:
        """See AsyncContainerProcess."""
        return background_loop().run(self._process.read(timeout))

    def read_all(self, timeout: float | None = None) -> bytes:
        """See AsyncContainerProcess."""
        return background_loop().run(self._process.read_all(timeout))

    def wait(self, timeout: float | None = None) -> int:
        """See AsyncContainerProcess."""
        return background_loop().run(self._process.wait(timeout))

    def kill(self, signal_name: str = "TERM") -> None:
        """See AsyncContainerProcess."""
        background_loop().run(self._process.kill(signal_name))

    def resize(self, rows: int, cols: int) -> None:
        """See AsyncContainerProcess."""
        background_loop().run(self._process.resize(rows, cols))

    def close(self) -> None:
        """See AsyncContainerProcess."""
        background_loop().run(self._process.close())

    def __enter__(self) -> ContainerProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        background_loop().run(self._process.__aexit__(kind, error, trace))
