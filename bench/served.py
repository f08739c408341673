"""A service in a process of its own, and clients of it that are as light as can be."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

START_S = 60.0


@dataclass(frozen=True, kw_only=True)
class Served:
    """A service that answers."""

    host: str
    """Where it listens."""
    port: int
    """Where it listens."""
    pid: int
    """Of its process."""

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"


@contextmanager
def serving(*options: str) -> Iterator[Served]:
    """`orchard serve` with these options on a free port, until left. Its log goes to a file that is shown
    when it does not start."""
    command = [str(Path(sys.executable).with_name("orchard")), "serve", "--port", "0", "--json", *options]
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        try:
            assert process.stdout is not None
            told = process.stdout.readline()
            if not told:
                log.seek(0)
                raise SystemExit(f"the service did not start: {log.read()[-2000:]}")
            host, _, port = json.loads(told)["url"].removeprefix("http://").rpartition(":")
            yield Served(host=host, port=int(port), pid=process.pid)
        finally:
            process.terminate()
            process.wait(START_S)


class Client:
    """One connection that carries one call at a time, written by hand so that it costs next to nothing."""

    def __init__(self, host: str, port: int) -> None:
        self._at = (host, port)
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def call(self, method: str, path: str, body: object = None) -> Any:
        """The JSON of a good answer. Raises RuntimeError for any other."""
        status, said = await self.raw(method, path, b"" if body is None else json.dumps(body).encode())
        if status != 200:
            raise RuntimeError(f"{method} {path}: {status} {said[:300]!r}")
        return json.loads(said)

    async def raw(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        """Status and body of any answer."""
        if self._streams is None:
            self._streams = await asyncio.open_connection(*self._at)
        reader, writer = self._streams
        writer.write(
            b"%b %b HTTP/1.1\r\nhost: 127.0.0.1\r\n" % (method.encode(), path.encode())
            + b"content-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body)
            + body
        )
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = int(head.partition(b"content-length:")[2].split(b"\r\n")[0])
        return int(head[9:12]), await reader.readexactly(length)

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


def quantile(times: Sequence[float], part: float) -> float:
    """The value below which that part of the times lies."""
    return sorted(times)[min(len(times) - 1, int(len(times) * part))]
