"""Lets pods reach an API server that only this machine reaches: bytes are passed on, TLS goes through."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator


class Relay:
    """Listens on `host`, at a port of its own, for what answers at `target`."""

    def __init__(self, host: str, target: tuple[str, int]) -> None:
        self.host = host
        self.port = 0
        self._target = target
        self._lines: set[asyncio.Task[None]] = set()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(1 << 16):
                writer.write(data)
                await writer.drain()
        writer.close()

    async def _come(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(*self._target)
        await asyncio.gather(self._pass_on(reader, back), self._pass_on(there, writer))

    async def serve(self, ready: threading.Event, loops: list[asyncio.AbstractEventLoop]) -> None:
        """Until its loop is stopped."""
        try:
            server = await asyncio.start_server(self._come, self.host, 0)
        except OSError:
            ready.set()  # no port: this machine does not have that address
            return
        self.port = server.sockets[0].getsockname()[1]
        loops.append(asyncio.get_running_loop())
        ready.set()
        await server.serve_forever()


@contextlib.contextmanager
def relayed(host: str, target: tuple[str, int]) -> Iterator[Relay | None]:
    """A relay that runs; None when this machine does not have the address."""
    relay, ready = Relay(host, target), threading.Event()
    loops: list[asyncio.AbstractEventLoop] = []

    def run() -> None:
        with contextlib.suppress(RuntimeError, asyncio.CancelledError):
            asyncio.run(relay.serve(ready, loops))

    thread = threading.Thread(target=run)
    thread.start()
    ready.wait()
    try:
        yield relay if relay.port else None
    finally:
        for loop in loops:
            loop.call_soon_threadsafe(_cancel_all, loop)
        thread.join()


def _cancel_all(loop: asyncio.AbstractEventLoop) -> None:
    for task in asyncio.all_tasks(loop):
        task.cancel()
