"""What a hostile client may hold open, and for how long."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from orchard_env.service.listener import Connection

from orchard_core import load_provider

from .running import GENEROUS_S, Running, parts_of, running, until


class Hurried(Connection):
    """Bounds that a test can wait for."""

    head_s = 0.3
    stall_s = 0.5


@pytest.fixture(scope="module")
def hurried(isolation: None) -> Iterator[Running]:
    """A service that waits for nobody."""
    with running(lambda: parts_of(load_provider("local"), body_s=0.3), connection=Hurried) as served:
        yield served


def connect(service: Running) -> socket.socket:
    """A connection on which nothing was said yet."""
    address = urlsplit(service.url)
    return socket.create_connection((str(address.hostname), int(address.port or 0)), timeout=GENEROUS_S)


def rest(peer: socket.socket) -> bytes:
    """What comes until the service closes; a service that does not is a failure of the socket's time-out."""
    told = b""
    try:
        while piece := peer.recv(1 << 16):
            told += piece
    except ConnectionResetError:
        pass
    return told


def test_a_connection_that_says_nothing_is_closed(hurried: Running) -> None:
    with connect(hurried) as peer:
        assert rest(peer) == b""


def test_a_head_that_never_ends_is_closed(hurried: Running) -> None:
    with connect(hurried) as peer:
        peer.sendall(b"GET / HTTP/1.1\r\nx-slow: ")
        assert rest(peer) == b""


def test_a_second_request_whose_head_never_ends_is_closed(hurried: Running) -> None:
    with connect(hurried) as peer:
        peer.sendall(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        told = b""
        while not told.endswith(b"}"):
            told += peer.recv(1 << 16)
        assert told.startswith(b"HTTP/1.1 200")
        peer.sendall(b"GET / HTTP/1.1\r\nx-slow: ")
        assert rest(peer) == b""


def test_a_body_that_never_ends_is_refused(hurried: Running) -> None:
    with connect(hurried) as peer:
        peer.sendall(b"POST /sandboxes HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{")
        assert peer.recv(1 << 16).startswith(b"HTTP/1.1 408")


def test_a_client_that_takes_nothing_of_its_answer_is_cut_off(hurried: Running) -> None:
    with hurried.client() as client:
        made = client.post("/sandboxes", json={"image": "host"}).json()["sandbox_id"]
        fill = {"command": "head -c 20000000 /dev/zero > big", "wait": True}
        client.post(f"/sandboxes/{made}/exec", json=fill).raise_for_status()
        with connect(hurried) as peer:
            peer.sendall(f"GET /sandboxes/{made}/files?path=big HTTP/1.1\r\nhost: x\r\n\r\n".encode())
            client.get("/health").raise_for_status()
            until(lambda: _open_connections(hurried) <= 1, "the one that takes nothing is cut off")
            assert len(rest(peer)) < 26_000_000
        client.delete(f"/sandboxes/{made}").raise_for_status()


def _open_connections(service: Running) -> int:
    """Connections that the service holds, by the kernel's own account."""
    port = f"{urlsplit(service.url).port:04X}"
    with open("/proc/net/tcp") as table:  # noqa: PTH123 - no regular file
        rows = [line.split() for line in table][1:]
    return sum(1 for row in rows if row[1].endswith(f":{port}") and row[3] == "01")


def test_many_that_say_nothing_do_not_keep_others_out(hurried: Running) -> None:
    idle = [connect(hurried) for _ in range(300)]
    with hurried.client() as client:
        assert client.get("/health").status_code == 200
    for peer in idle:
        peer.close()
