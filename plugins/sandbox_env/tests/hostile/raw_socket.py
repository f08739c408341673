"""WebSockets as only an attacker speaks them: frame by frame, without reading."""

from __future__ import annotations

import os
import socket
import struct
from urllib.parse import urlsplit

from ..service.running import GENEROUS_S, Running

TEXT, CONTINUED, CLOSE, PING, PONG = 1, 0, 8, 9, 10
_LAST = 0x80


def connected(service: Running, *, buffer: int | None = None) -> socket.socket:
    """A connection on which nothing was said; `buffer` bounds what the kernel takes for who does not read."""
    address = urlsplit(service.url)
    peer = socket.socket()
    if buffer is not None:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    peer.settimeout(GENEROUS_S)
    peer.connect((str(address.hostname), int(address.port or 0)))
    return peer


def upgraded(peer: socket.socket, path: str, *, key: str | None, extensions: str = "") -> bytes:
    """Ask for a WebSocket; the head of the answer."""
    lines = [f"GET {path} HTTP/1.1", "Host: localhost", "Upgrade: websocket", "Connection: Upgrade"]
    lines += ["Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==", "Sec-WebSocket-Version: 13"]
    lines += [f"X-API-Key: {key}"] if key else []
    lines += [f"Sec-WebSocket-Extensions: {extensions}"] if extensions else []
    peer.sendall("\r\n".join([*lines, "", ""]).encode())
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += peer.recv(1)
    return head


def frame(kind: int, body: bytes = b"", *, last: bool = True) -> bytes:
    """One frame of a client."""
    size = bytes([_LAST | len(body)]) if len(body) < 126 else b"\xfe" + struct.pack("!H", len(body))
    mask = os.urandom(4)
    masked = bytes(byte ^ mask[at % 4] for at, byte in enumerate(body))
    return bytes([kind | (_LAST if last else 0)]) + size + mask + masked


def frames(peer: socket.socket, until: bytes) -> list[tuple[int, bytes]]:
    """Short frames of the service, the one with this body the last; all, when it closes."""
    found: list[tuple[int, bytes]] = []
    waiting = b""
    while piece := _received(peer):
        waiting += piece
        at = 0
        while at + 2 <= len(waiting) and at + 2 + waiting[at + 1] <= len(waiting):
            size = waiting[at + 1]
            found.append((waiting[at] & 15, waiting[at + 2 : at + 2 + size]))
            at += 2 + size
            if found[-1][1] == until:
                return found
        waiting = waiting[at:]
    return found


def _received(peer: socket.socket) -> bytes:
    try:
        return peer.recv(1 << 20)
    except ConnectionResetError:
        return b""
