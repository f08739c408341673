"""A program on a terminal inside a sandbox, over the published WebSocket."""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
from collections import deque
from contextlib import suppress
from types import TracebackType
from typing import Any

import aiohttp

from orchard_core import ExecError, SandboxConnectionLost, SandboxError
from orchard_env.client.http import ServiceHttp
from orchard_env.client.problems import error_of

_READY_S = 60.0
_PASTE = 24 * 1024
"""Bytes of input a frame."""
_HELD_MAX = 64 << 20
"""Output that nobody has read; above it the program waits."""
_CLOSE_S = 5.0


class TerminalError(ExecError, RuntimeError):
    """The service ended a terminal session with an error."""


class AsyncContainerProcess:
    """A running program and its terminal. Output is read from the beginning, both streams in one."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        """Made by `AsyncSandboxInstance.exec(..., pty=True)`."""
        self._socket = socket
        self._pid: int | None = None
        self._code: int | None = None
        self._fault: SandboxError | None = None
        self._held: deque[bytes] = deque()
        self._size = 0
        self._changed = asyncio.Condition()
        self._ready = asyncio.Event()
        self._exited = asyncio.Event()
        self._writing = asyncio.Lock()
        self._reading = asyncio.create_task(self._read_frames())

    @classmethod
    async def open(
        cls, http: ServiceHttp, path: str, init: dict[str, object], *, key_in_query: bool
    ) -> AsyncContainerProcess:
        """Connect and start the program. Raises ExecError for one that cannot be started,
        SandboxConnectionLost, and as the service refuses."""
        try:
            socket = await http.socket(path, key_in_query=key_in_query)
        except aiohttp.WSServerHandshakeError as error:
            raise error_of(error.status, b"", error.headers or {}, where=f"WS {path}") from error
        except (aiohttp.ClientError, OSError) as error:
            raise SandboxConnectionLost(
                f"no terminal could be opened at {http.address.url}{path}: {type(error).__name__}",
                hint="a proxy on the way must let WebSocket through",
            ) from error
        process = cls(socket)
        try:
            await process._begin(init)
        except BaseException:
            await process.close()
            raise
        return process

    async def _begin(self, init: dict[str, object]) -> None:
        await self._send({"type": "init", **init})
        try:
            async with asyncio.timeout(_READY_S):
                await self._ready.wait()
        except TimeoutError:
            raise SandboxConnectionLost(
                f"the program did not start within {_READY_S:g} s", hint="see that the sandbox is alive"
            ) from None
        if self._fault is not None:
            raise self._fault

    @property
    def pid(self) -> int | None:
        """Its process id, inside."""
        return self._pid

    @property
    def returncode(self) -> int | None:
        """Its exit code, 128 + n when signal n ended it; None while it runs."""
        return self._code

    def poll(self) -> int | None:
        """Likewise, without waiting."""
        return self._code

    async def write_stdin(self, data: bytes | str) -> None:
        """Type something. Large pastes go in pieces, at the program's pace. Raises SandboxConnectionLost, and
        ExecError when it has ended."""
        raw = data.encode() if isinstance(data, str) else data
        async with self._writing:
            for start in range(0, len(raw), _PASTE):
                piece = base64.b64encode(raw[start : start + _PASTE]).decode()
                await self._send({"type": "stdin", "data": piece})

    async def read(self, timeout: float | None = None) -> bytes:
        """What it wrote since the last call, after waiting for some; empty when it has ended and all was
        read. Raises TimeoutError when there is none within `timeout` seconds, SandboxConnectionLost."""
        async with asyncio.timeout(timeout), self._changed:
            await self._changed.wait_for(lambda: bool(self._held) or self._exited.is_set())
            return self._take()

    async def read_all(self, timeout: float | None = None) -> bytes:
        """All it writes until it ends. Raises as `read`; what was read until then can be read again."""
        async with asyncio.timeout(timeout), self._changed:
            while not self._exited.is_set():
                if self._size >= _HELD_MAX:
                    raise ExecError(
                        f"the program wrote more than {_HELD_MAX} bytes",
                        hint="read it piece by piece with read()",
                    )
                await self._changed.wait()
            return self._take()

    def _take(self) -> bytes:
        taken = b"".join(self._held)
        self._held.clear()
        self._size = 0
        self._changed.notify_all()
        if not taken and isinstance(self._fault, SandboxConnectionLost):
            raise self._fault
        return taken

    async def wait(self, timeout: float | None = None) -> int:
        """Its exit code. Raises TimeoutError after `timeout` seconds; it then runs on. Raises TerminalError
        when the service ended the session, SandboxConnectionLost."""
        async with asyncio.timeout(timeout):
            await self._exited.wait()
        if self._fault is not None:
            raise self._fault
        assert self._code is not None
        return self._code

    async def kill(self, signal_name: str = "TERM") -> None:
        """Send TERM, KILL, INT or HUP to its process group; nothing happens when it has ended."""
        with suppress(ExecError, SandboxConnectionLost):
            await self._send({"type": "signal", "sig": signal_name.upper().removeprefix("SIG")})

    async def resize(self, rows: int, cols: int) -> None:
        """Change the terminal's size; nothing happens when it has ended."""
        with suppress(ExecError, SandboxConnectionLost):
            await self._send({"type": "resize", "rows": int(rows), "cols": int(cols)})

    async def close(self) -> None:
        """Hang up. A program that still runs gets what a closed terminal means. Repeated calls are fine."""
        with suppress(aiohttp.ClientError, OSError, TimeoutError):
            async with asyncio.timeout(_CLOSE_S):
                if not self._socket.closed and not self._exited.is_set():
                    await self._socket.send_str(json.dumps({"type": "close"}))
                await self._socket.close()
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)

    async def __aenter__(self) -> AsyncContainerProcess:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if not self._exited.is_set():
                await self.kill("TERM")
        finally:
            await self.close()

    async def _send(self, frame: dict[str, object]) -> None:
        if self._exited.is_set():
            raise self._fault or ExecError("the program has ended", hint="read_all gives what it wrote")
        try:
            await self._socket.send_str(json.dumps(frame))
        except (aiohttp.ClientError, OSError) as error:
            raise self._lost() from error

    def _lost(self) -> SandboxConnectionLost:
        return SandboxConnectionLost(
            "the connection to the terminal broke before the program ended",
            hint="start it again if it may run twice",
        )

    async def _read_frames(self) -> None:
        try:
            async for message in self._socket:
                if message.type is aiohttp.WSMsgType.TEXT and await self._heard(json.loads(message.data)):
                    return
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            self._fault = TerminalError(f"the service sent a frame that means nothing: {error!r}")
        finally:
            if self._code is None and self._fault is None:
                self._fault = self._lost()
            self._ready.set()
            self._exited.set()
            async with self._changed:
                self._changed.notify_all()

    async def _heard(self, frame: dict[str, Any]) -> bool:
        """Whether it was the last."""
        kind = frame.get("type")
        if kind == "stdout":
            await self._output(frame["data"])
        elif kind == "ready":
            self._pid = frame.get("pid")
            self._ready.set()
        elif kind == "exit":
            self._code = int(frame["code"])
        elif kind == "error":
            self._fault = TerminalError(f"the service ended the session: {frame.get('message')}")
        return kind in ("exit", "error")

    async def _output(self, data: str) -> None:
        try:
            piece = base64.b64decode(data, validate=True)
        except binascii.Error as error:
            raise ValueError(f"output that is no base64: {error}") from error
        async with self._changed:
            self._held.append(piece)
            self._size += len(piece)
            self._changed.notify_all()
            await self._changed.wait_for(lambda: self._size < _HELD_MAX)
