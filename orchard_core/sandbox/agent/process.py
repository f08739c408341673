"""A started command, seen from the driver."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator
from typing import Any

from orchard_core.errors import StdinClosed
from orchard_core.sandbox.agent import read, spec
from orchard_core.sandbox.agent.link import CALL_S, AgentLink
from orchard_core.sandbox.agent.told import RunTold, outcome, told
from orchard_core.sandbox.agent.understood import understood
from orchard_core.sandbox.agent.wire import ANSWER_MAX, PIECE
from orchard_core.types.sandbox import ExecResult, PtySize

WAIT_S = 30.0
"""One long poll; the client asks again until the command ends."""
_KILL_S = 8.0
_STDIN_S = 24 * 3600.0
"""A command may think, or wait for its turn, for as long as it likes before it reads."""


class AgentProcess:
    """A run by its id. It needs no connection of its own, so it outlives any that drops."""

    def __init__(self, link: AgentLink, run_id: str, *, answer_max: int = ANSWER_MAX) -> None:
        self._link = link
        self._answer_max = answer_max
        self._id = run_id
        self._path = f"/v1/exec/{run_id}"
        self._sent = 0

    @property
    def id(self) -> str:
        """The client-made id."""
        return self._id

    def stdout(self) -> AsyncIterator[bytes]:
        """Pieces of standard output from the beginning, until the command has ended.

        Bytes that were written faster than they were read, beyond the cap, are skipped.
        """
        return self._output("stdout")

    def stderr(self) -> AsyncIterator[bytes]:
        """Pieces of standard error, likewise."""
        return self._output("stderr")

    async def _output(self, stream: str) -> AsyncIterator[bytes]:
        cursor, ended = 0, False
        while not ended:
            query = {"stream": stream, "cursor": cursor, "wait": WAIT_S}
            headers, piece = await self._link.call(
                "GET", f"{self._path}/output", query, repeat=True, patience=WAIT_S + CALL_S
            )
            with understood():
                cursor = read.count(int(headers["x-orchard-cursor"])) + len(piece)
            ended = "x-orchard-end" in headers
            if piece:
                yield piece

    async def write(self, data: bytes) -> None:
        """Feed standard input, at the command's own pace. Raises ExecError when it is closed."""
        for start in range(0, len(data), PIECE):
            await self._write(data[start : start + PIECE])

    async def _write(self, piece: bytes) -> None:
        query = {"offset": self._sent}
        await self._link.call("POST", f"{self._path}/stdin", query, piece, repeat=True, patience=_STDIN_S)
        self._sent += len(piece)

    async def close_stdin(self) -> None:
        """End of file on standard input; nothing happens when it is closed already."""
        try:
            query = {"offset": self._sent, "eof": 1}
            await self._link.call("POST", f"{self._path}/stdin", query, repeat=True, patience=_STDIN_S)
        except StdinClosed:
            return

    async def feed(self, data: bytes | AsyncIterable[bytes]) -> None:
        """Write everything and close; a command that stops reading is no error, as in a shell's pipe."""
        try:
            if isinstance(data, bytes):
                await self.write(data)
            else:
                async for piece in data:
                    await self.write(piece)
            await self.close_stdin()
        except StdinClosed:
            return

    async def signal(self, number: int) -> None:
        """Send a signal to the process group; nothing happens when the command has ended. What a terminal
        has a key for (INT, QUIT, TSTP) goes to the group that is in front of it."""
        await self._link.call("POST", f"{self._path}/signal", {"signal": int(number)})

    async def kill(self) -> None:
        """End the command and all its children, those that left its process group too."""
        query = {"signal": 9, "to": "tree"}
        await self._link.call("POST", f"{self._path}/signal", query, repeat=True, patience=_KILL_S)

    async def resize(self, size: PtySize) -> None:
        """Resize the terminal; nothing happens when the command has ended. Raises ExecError without a PTY."""
        query = {"rows": size.rows, "cols": size.cols}
        await self._link.call("POST", f"{self._path}/resize", query, repeat=True)

    async def hang_up(self, grace_s: int = 2) -> None:
        """End the session as a lost line does: SIGHUP, and after `grace_s` seconds (60 at most) a kill of
        everything that has not ended. Raises ExecError without a PTY."""
        query = {"grace": grace_s}
        await self._link.call("POST", f"{self._path}/hangup", query, repeat=True, patience=grace_s + CALL_S)

    async def status(self, wait_s: float = 0.0) -> tuple[dict[str, Any], bytes]:
        """What the agent knows of the run, after waiting up to `wait_s` for its end."""
        _, body = await self._link.call(
            "GET",
            self._path,
            {"wait": wait_s},
            repeat=True,
            patience=wait_s + CALL_S,
            limit=self._answer_max,
        )
        return spec.parse(body)

    async def told(self, wait_s: float = 0.0) -> RunTold:
        """How it stands, after waiting up to `wait_s` for its end. Raises ExecError, ExecForgotten."""
        return told(*await self.status(wait_s))

    async def wait(self, timeout: float | None = None) -> ExecResult:
        """Wait for the end. Raises TimeoutError after `timeout` seconds; the command then lives on. One that
        waited for its turn in a lane may only now raise as `exec`."""
        async with asyncio.timeout(timeout):
            while True:
                result = outcome(*await self.status(WAIT_S))
                if result is not None:
                    return result
