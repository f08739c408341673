"""Serving the pages until someone stops it."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import socket
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import uvicorn

from orchard_core.errors import ConfigError
from orchard_core.viewer.app import make_app
from orchard_core.viewer.guard import Door, Guard
from orchard_core.viewer.search.finding import Searcher
from orchard_core.viewer.search.place import default_cache
from orchard_core.viewer.sources.shelf import Shelf
from orchard_core.viewer.vocabulary import Vocabulary


def listener(host: str, port: int) -> socket.socket:
    """A bound socket; port 0: any that is free. Raises ConfigError."""
    try:
        family = socket.AF_INET6 if ipaddress.ip_address(host).version == 6 else socket.AF_INET
    except ValueError:
        raise ConfigError(f"{host!r} is no IP address", hint="give one, such as 127.0.0.1") from None
    made = socket.socket(family, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((host, port))
        made.listen(128)
    except OSError as error:
        made.close()
        if error.errno == errno.EADDRINUSE:
            raise ConfigError(
                f"port {port} of {host} is taken", hint="--port 0 takes any that is free"
            ) from None
        raise ConfigError(
            f"port {port} of {host} cannot be had: {error.strerror}", hint="choose another --port or --host"
        ) from None
    return made


@asynccontextmanager
async def serving(
    shelf: Shelf,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    index: bool = True,
    cache: Path | None = None,
    vocabulary: Vocabulary | None = None,
    link_used: Callable[[str], None] = lambda link: None,
) -> AsyncIterator[Door]:
    """Serve inside the block, with indexes in `cache` or the user's own. Raises ConfigError when the port
    cannot be had."""
    cache = cache or default_cache()
    held = listener(host, port)
    door = Door(host=host, port=held.getsockname()[1], link_used=link_used)
    app = Guard(make_app(shelf, Searcher(cache, enabled=index), vocabulary), door)
    config = uvicorn.Config(
        app,
        log_level="critical",
        access_log=False,
        server_header=False,
        date_header=False,
        lifespan="off",
        timeout_keep_alive=30,
        limit_concurrency=200,
        timeout_graceful_shutdown=1,
    )
    server = _Server(config)
    task = asyncio.create_task(server.serve(sockets=[held]))
    worker = await _start_worker(cache, [source.root for source in shelf.sources]) if index else None
    try:
        yield door
    finally:
        server.should_exit = True
        await _stop_worker(worker)
        await task
        held.close()


class _Server(uvicorn.Server):
    """Leaves signals to the command."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Captures none."""
        yield


async def _start_worker(cache: Path, roots: Sequence[Path]) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "orchard_core.viewer.search.worker", str(cache), *map(str, roots),
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip


async def _stop_worker(worker: asyncio.subprocess.Process | None) -> None:
    if worker is None or worker.returncode is not None:
        return
    assert worker.stdin is not None
    worker.stdin.close()
    try:
        await asyncio.wait_for(worker.wait(), 3)
    except TimeoutError:
        worker.kill()
        await worker.wait()
