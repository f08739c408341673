"""A provider whose agents can be reached from elsewhere, as pods can: each listens on a port of its own."""

from __future__ import annotations

import asyncio
import contextlib
import os
from dataclasses import replace
from pathlib import Path

from orchard_core import (
    AgentClient,
    AgentEndpoint,
    AgentProcesses,
    AgentProvider,
    Capabilities,
    NetworkMode,
    NewPlace,
    SandboxSpec,
    SandboxUnsupported,
)

_CAPABILITIES = Capabilities(
    images=frozenset({"host"}),
    networks=frozenset({NetworkMode.HOST}),
    isolated=False,
    private_paths=False,
)


def reachable_provider(ports: Ports | None = None) -> AgentProvider:
    """`ports` can shut them all, as a network that changes does."""
    return AgentProvider(name="reachable", capabilities=_CAPABILITIES, places=_Places(ports or Ports()))


class Ports:
    """The ports of all agents of one provider."""

    def __init__(self) -> None:
        self.connections = 0
        """How many came in so far."""
        self.refuses = False
        """Whoever comes in is thrown out."""
        self._relays: list[_Relay] = []

    async def open(self, path: str) -> int:
        """A port that leads to the Unix socket."""
        relay = _Relay(path, self)
        self._relays.append(relay)
        return await relay.open()

    async def shut(self) -> None:
        """Nobody comes in any more, and who is in is thrown out."""
        for relay in self._relays:
            relay.shut()


class _Relay:
    def __init__(self, path: str, ports: Ports) -> None:
        self._path = path
        self._ports = ports
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()

    async def open(self) -> int:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    def shut(self) -> None:
        if self._server is not None:
            self._server.close()
        for writer in list(self._writers):
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._ports.connections += 1
        try:
            if self._ports.refuses:
                raise ConnectionRefusedError
            inner_reader, inner_writer = await _connected(Path(self._path))
        except OSError:
            writer.transport.abort()
            return
        both = {writer, inner_writer}
        self._writers |= both
        try:
            await asyncio.gather(_copy(reader, inner_writer), _copy(inner_reader, writer))
        finally:
            self._writers -= both
            for one in both:
                one.transport.abort()


async def _connected(path: Path) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """The path may be longer than a socket's may be."""
    directory = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        return await asyncio.open_unix_connection(f"/proc/self/fd/{directory}/{path.name}")
    finally:
        os.close(directory)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while piece := await reader.read(1 << 16):
            writer.write(piece)
            await writer.drain()
        writer.write_eof()


class _Told(AgentClient):
    """The service's own client, which needs no port, and tells others of one."""

    def __init__(self, endpoint: AgentEndpoint, port: int) -> None:
        super().__init__(endpoint)
        self._outside = replace(endpoint, url=f"http://127.0.0.1:{port}")

    @property
    def endpoint(self) -> AgentEndpoint:
        return self._outside


class _Places:
    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._processes = AgentProcesses()

    async def place(self, sandbox_id: str, spec: SandboxSpec) -> NewPlace:
        if spec.network.mode not in (NetworkMode.NONE, NetworkMode.HOST):
            raise SandboxUnsupported(f"no network policy {spec.network.mode} here")
        return _Place(await self._processes.place(sandbox_id, spec), self._ports)

    async def close(self) -> None:
        await self._ports.shut()
        await self._processes.close()


class _Place:
    def __init__(self, inner: NewPlace, ports: Ports) -> None:
        self._inner = inner
        self._ports = ports

    @property
    def workdir(self) -> str:
        return self._inner.workdir

    async def restart(self) -> AgentClient:
        inner = await self._inner.restart()
        endpoint = inner.endpoint
        await inner.close()
        return _Told(endpoint, await self._ports.open(endpoint.url.removeprefix("unix:")))

    async def destroy(self) -> None:
        await self._inner.destroy()

    def ended(self) -> str | None:
        return self._inner.ended()
