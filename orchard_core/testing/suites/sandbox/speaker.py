"""A tiny HTTP server on the driver's side, and programs inside that speak TCP with whatever the image has."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from orchard_core.errors import CommandNotFound
from orchard_core.sandbox.contract import Sandbox
from orchard_core.testing.suites.sandbox.base import PATIENCE_S

_CLIENTS = {
    "python3": (
        "import socket,sys\n"
        "s=socket.create_connection((sys.argv[1],int(sys.argv[2])),5)\n"
        "s.settimeout(20)\n"
        "s.sendall(sys.stdin.buffer.read())\n"
        "while 1:\n"
        " d=s.recv(65536)\n"
        " if not d: break\n"
        " sys.stdout.buffer.write(d)\n"
    ),
    "perl": (
        "use IO::Socket::INET;binmode STDIN;binmode STDOUT;"
        "my $s=IO::Socket::INET->new(PeerAddr=>$ARGV[0],PeerPort=>$ARGV[1],Timeout=>5) or exit 1;"
        "local $/;my $d=<STDIN>;print $s $d;$s->flush;print while sysread($s,$_,65536);"
    ),
}
_SERVERS = {
    "python3": (
        "import socket,sys\n"
        "s=socket.create_server(('127.0.0.1',0))\n"
        "print(s.getsockname()[1],flush=True)\n"
        "while 1:\n"
        " c,_=s.accept()\n"
        " c.sendall(b'from inside: '+c.recv(65536))\n"
        " c.close()\n"
    ),
    "perl": (
        "use IO::Socket::INET;$|=1;"
        "my $s=IO::Socket::INET->new(LocalAddr=>'127.0.0.1',LocalPort=>0,Listen=>5) or exit 1;"
        'print $s->sockport,"\\n";'
        "while(my $c=$s->accept){sysread($c,my $d,65536);syswrite($c,'from inside: '.$d);close $c}"
    ),
}
_FLAGS = {"python3": "-c", "perl": "-e"}


@dataclass(slots=True)
class TinyServer:
    """What the server saw."""

    port: int = 0
    """Its port on the driver's loopback."""
    seen: list[bytes] = field(default_factory=list)
    """The head of every request, or of whatever else came."""

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"


@asynccontextmanager
async def tiny_server(body: bytes = b"hello from the driver") -> AsyncIterator[TinyServer]:
    """An HTTP server that answers everything with `body`."""
    server = TinyServer()
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            server.seen.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(head + body)
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            server.seen.append(b"")
        finally:
            writer.close()

    listener = await asyncio.start_server(answer, "127.0.0.1", 0)
    server.port = listener.sockets[0].getsockname()[1]
    async with listener:
        yield server


async def speak(sandbox: Sandbox, host: str, port: int, data: bytes) -> bytes | None:
    """What a program inside hears after it sent `data`; None when it could not connect."""
    language = await language_of(sandbox)
    argv = [language, _FLAGS[language], _CLIENTS[language], host, str(port)]
    result = await sandbox.exec(argv, stdin=data, timeout=PATIENCE_S)
    return result.stdout if result.ok else None


async def get(sandbox: Sandbox, host: str, port: int, path: str, key: str = "") -> bytes | None:
    """The body of a GET from inside; None when it could not connect."""
    request = (
        f"GET {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {key}\r\nConnection: close\r\n\r\n"
    )
    answer = await speak(sandbox, host, port, request.encode())
    return None if answer is None else answer.partition(b"\r\n\r\n")[2]


async def serve_inside(sandbox: Sandbox) -> int:
    """Start a server inside that repeats what it hears after `from inside: `; its port there."""
    language = await language_of(sandbox)
    process = await sandbox.start([language, _FLAGS[language], _SERVERS[language]])
    async with asyncio.timeout(PATIENCE_S):
        return int(await anext(process.stdout()))


async def language_of(sandbox: Sandbox) -> str:
    """A language inside that has sockets; skips the test when there is none."""
    for name, flag in _FLAGS.items():
        try:
            if (await sandbox.exec([name, flag, "print 1" if name == "perl" else "print(1)"])).ok:
                return name
        except CommandNotFound:
            continue
    pytest.skip(f"the image has none of {', '.join(shlex.quote(name) for name in _FLAGS)}")
