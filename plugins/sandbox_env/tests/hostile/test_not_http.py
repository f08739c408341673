"""What is no request, or more than one: refused with words, however much more is sent behind it."""

from __future__ import annotations

import json

import pytest

from ..service.running import Running
from .raw_socket import connected


def told(service: Running, sent: bytes) -> tuple[int, dict[str, object]]:
    """Status and body of the only answer."""
    with connected(service) as peer:
        peer.sendall(sent)
        heard = b""
        while piece := peer.recv(1 << 16):
            heard += piece
    head, _, body = heard.partition(b"\r\n\r\n")
    assert b"content-type: application/json" in head.lower()
    return int(head.split(b" ")[1]), json.loads(body)


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500),
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET /\x00 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/9.9\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nno colon\r\n\r\n",
        b"GET /" + b"a" * 2_000_000,
        b"GET / HTTP/1.1\r\nX: " + b"a" * 2_000_000,
        b"G" * 2_000_000,
        b"\xff" * 100_000,
    ],
    ids=["TLS", "SSH", "HTTP/2", "NUL", "version", "colon", "address", "header", "method", "bytes"],
)
def test_what_is_no_request_is_told_so(shared: Running, sent: bytes) -> None:
    status, body = told(shared, sent)
    assert status in (400, 431)
    assert body["error"] == "RequestInvalid"
    assert body["message"]
    assert body["request_id"]
