"""Requests and answers on one connection, told apart to the byte however they come."""

from __future__ import annotations

import hashlib
import json
import random
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from orchard_env.service.exchange import RAW_MIN

from orchard_core import load_provider

from .running import GENEROUS_S, Running, parts_of, running

CONTENT = random.Random(7).randbytes(3 * RAW_MIN + 1)
FILE = "/v2/sandboxes/bytes/agent/v1/files?path=/tmp/content"
HEALTH = b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n"


@pytest.fixture(scope="module")
def served(isolation: None) -> Iterator[Running]:
    """A service with one sandbox."""
    with running(lambda: parts_of(load_provider("local"), body_mb=1)) as service:
        with service.client() as client:
            client.post("/sandboxes", json={"image": "host", "sandbox_id": "bytes"}).raise_for_status()
            client.get("/sandboxes/bytes/wait").raise_for_status()
        yield service


@pytest.fixture
def peer(served: Running) -> Iterator[socket.socket]:
    """A connection on which nothing was said yet."""
    address = urlsplit(served.url)
    where = (str(address.hostname), int(address.port or 0))
    with socket.create_connection(where, timeout=GENEROUS_S) as made:
        yield made


def head(method: str, target: str, *lines: str) -> bytes:
    return "\r\n".join((f"{method} {target} HTTP/1.1", "host: x", *lines, "", "")).encode()


def upload() -> bytes:
    return head("PUT", FILE, f"content-length: {len(CONTENT)}") + CONTENT


class Answers:
    """The answers on a connection, one after the other."""

    def __init__(self, peer: socket.socket) -> None:
        self._file = peer.makefile("rb")

    def next(self) -> tuple[int, bytes]:
        """Status and body."""
        status = int(self._file.readline().split()[1])
        length = 0
        while (line := self._file.readline().strip().lower()) != b"":
            if line.startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        return status, self._file.read(length)


def stored(served: Running) -> str:
    with served.client() as client:
        return hashlib.sha256(client.get(FILE).content).hexdigest()


def test_a_request_right_behind_a_large_body_is_one_of_its_own(peer: socket.socket, served: Running) -> None:
    peer.sendall(upload() + HEALTH + upload() + HEALTH)
    answers = Answers(peer)
    assert [answers.next()[0] for _ in range(4)] == [200, 200, 200, 200]
    assert stored(served) == hashlib.sha256(CONTENT).hexdigest()


def test_a_large_body_may_come_in_pieces_of_any_size(peer: socket.socket, served: Running) -> None:
    whole, at, sizes = upload() + HEALTH, 0, random.Random(11)
    while at < len(whole):
        size = sizes.choice((1, 100, 5_000, RAW_MIN // 2, RAW_MIN + 3))
        peer.sendall(whole[at : at + size])
        at += size
    answers = Answers(peer)
    assert (answers.next()[0], answers.next()[0]) == (200, 200)
    assert stored(served) == hashlib.sha256(CONTENT).hexdigest()


def test_what_follows_a_refused_body_is_still_understood(peer: socket.socket) -> None:
    size = 2 << 20
    peer.sendall(head("POST", "/sandboxes", f"content-length: {size}"))
    answers = Answers(peer)
    assert answers.next()[0] == 413, "before the body was sent"
    peer.sendall(bytes(size) + HEALTH)
    status, body = answers.next()
    assert (status, json.loads(body)["status"]) == (200, "ok")


def test_a_large_body_in_chunks_arrives_as_well(peer: socket.socket, served: Running) -> None:
    peer.sendall(head("PUT", FILE, "transfer-encoding: chunked"))
    for start in range(0, len(CONTENT), RAW_MIN):
        piece = CONTENT[start : start + RAW_MIN]
        peer.sendall(b"%x\r\n" % len(piece) + piece + b"\r\n")
    peer.sendall(b"0\r\n\r\n" + HEALTH)
    answers = Answers(peer)
    assert (answers.next()[0], answers.next()[0]) == (200, 200)
    assert stored(served) == hashlib.sha256(CONTENT).hexdigest()


def test_the_answer_to_a_head_request_has_no_body(peer: socket.socket) -> None:
    peer.sendall(head("HEAD", "/health") + HEALTH)
    told = b""
    while told.count(b"HTTP/1.1 ") < 2 or not told.endswith(b"}"):
        told += peer.recv(1 << 16)
    assert told.partition(b"\r\n\r\n")[2].startswith(b"HTTP/1.1 200")
