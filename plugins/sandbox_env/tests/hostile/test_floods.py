"""Clients that open, send or hold more than is sensible: what it costs the service is bounded."""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Iterator
from typing import ClassVar

import pytest
from orchard_env.service.bounded_socket import FRAGMENTS_MAX, BoundedSocket
from orchard_env.service.seams import Tenant

from orchard_core import load_provider

from ..service.running import KnownKeys, Running, parts_of, running, until
from .conftest import made
from .raw_socket import CLOSE, CONTINUED, PING, PONG, TEXT, connected, frame, frames, upgraded

MOST = 12


@pytest.fixture(scope="module")
def narrow(isolation: None) -> Iterator[Running]:
    """A service that holds few connections."""
    keys = KnownKeys(ours=Tenant(name="ours"), theirs=Tenant(name="theirs"))
    parts = lambda: parts_of(load_provider("local"), tenancy=keys, connections=MOST)  # noqa: E731
    with running(parts, key="ours") as served:
        yield served


class Impatient(BoundedSocket):
    """Waits less long, and counts the clients that are gone."""

    stall_s = 0.5
    linger_s = 0.2
    gone: ClassVar[list[bool]] = []

    def connection_lost(self, exc: Exception | None) -> None:
        """See BoundedSocket."""
        super().connection_lost(exc)
        self.gone.append(True)


HELD = 1 << 20


@pytest.fixture(scope="module")
def impatient(isolation: None) -> Iterator[Running]:
    """A service that holds little for the clients of its sockets, and waits little for them."""
    keys = KnownKeys(ours=Tenant(name="ours"), theirs=Tenant(name="theirs"))
    parts = lambda: parts_of(load_provider("local"), tenancy=keys)  # noqa: E731
    with running(parts, key="ours", websocket=Impatient, held=HELD) as served:
        yield served


def test_messages_that_never_end_have_a_bound_together_and_who_holds_most_makes_room(
    impatient: Running,
) -> None:
    """Each of them may be large, and there may be thousands."""
    path = f"/v2/sandboxes/{made(impatient)}/exec/stream"
    piece = b" " * 60_000
    with contextlib.ExitStack() as stack:
        peers = [stack.enter_context(connected(impatient)) for _ in range(5)]
        for peer in peers:
            upgraded(peer, path, key="ours")
        for peer in peers[1:]:
            peer.sendall(frame(TEXT, piece, last=False))
        greedy, *others = peers
        with contextlib.suppress(ConnectionError):
            greedy.sendall(frame(TEXT, piece, last=False))
            for _ in range(HELD // len(piece)):
                greedy.sendall(frame(CONTINUED, piece, last=False))
        kind, body = frames(greedy, b"never")[-1]
        assert (kind, struct.unpack("!H", body[:2])[0]) == (CLOSE, 1013)
        for peer in others:
            peer.sendall(frame(PING, b"still here"))
            assert frames(peer, b"still here")[-1] == (PONG, b"still here")


def test_who_takes_nothing_of_what_it_asked_for_does_not_keep_its_connection(impatient: Running) -> None:
    """To close in order waits until all is sent, which is for ever."""
    before = len(Impatient.gone)
    path = f"/v2/sandboxes/{made(impatient)}/exec/stream"
    with connected(impatient, buffer=1024) as peer:
        upgraded(peer, path, key="ours")
        peer.sendall(frame(TEXT, b'{"command": "yes"}'))
        until(lambda: len(Impatient.gone) > before, "it is cut off")


def test_a_frame_that_never_ends_holds_its_connection_no_longer_than_a_ping(isolation: None) -> None:
    """In its midst no ping can be answered."""
    before = len(Impatient.gone)
    with running(
        lambda: parts_of(load_provider("process")),
        websocket=Impatient,
        ws_ping_interval=0.2,
        ws_ping_timeout=0.2,
    ) as service:
        path = f"/v2/sandboxes/{made(service)}/exec/stream"
        with connected(service) as peer:
            upgraded(peer, path, key=None)
            peer.sendall(frame(TEXT, b" " * 100)[:50])
            until(lambda: len(Impatient.gone) > before, "it is cut off")


@pytest.mark.slow
def test_who_pings_without_end_and_takes_no_answer_is_not_remembered(shared: Running, box: str) -> None:
    """Each answer would wait in the service's memory for as long as the client keeps from reading."""
    with connected(shared, buffer=4096) as peer:
        assert b" 101 " in upgraded(peer, f"/v2/sandboxes/{box}/exec/stream", key="ours")
        pings = frame(PING, b"x" * 125) * 1000
        sent = 0
        for _ in range(80):
            peer.sendall(pings)
            sent += 1000
        assert 0 < _answers(peer) < sent


def _answers(peer: socket.socket) -> int:
    """How many pings were answered, of those before one that is sent now. While answers pile up none is
    given, so that it is sent again for as long as nothing comes."""
    told = b""
    peer.settimeout(1.0)
    while not told.endswith(b"last"):
        peer.sendall(frame(PING, b"last"))
        with contextlib.suppress(TimeoutError):
            while not told.endswith(b"last"):
                told += peer.recv(1 << 20)
    return told.count(b"x" * 125)


def test_a_message_in_endless_empty_pieces_is_cut_off(shared: Running, box: str) -> None:
    with connected(shared) as peer:
        upgraded(peer, f"/v2/sandboxes/{box}/exec/stream", key="ours")
        with contextlib.suppress(ConnectionError):
            peer.sendall(frame(TEXT, b"{", last=False) + frame(CONTINUED, last=False) * (FRAGMENTS_MAX + 1))
        kind, body = frames(peer, b"never")[-1]
        assert (kind, struct.unpack("!H", body[:2])[0]) == (CLOSE, 1009)


def test_no_client_has_the_service_unpack_what_it_sends(shared: Running, box: str) -> None:
    with connected(shared) as peer:
        head = upgraded(peer, f"/v2/sandboxes/{box}/exec/stream", key="ours", extensions="permessage-deflate")
        assert b" 101 " in head
        assert b"permessage-deflate" not in head


def test_connections_that_ask_for_nothing_make_room_for_those_that_do(narrow: Running) -> None:
    """Whoever has no key may open as many as they like: it costs nobody else anything."""
    with contextlib.ExitStack() as stack:
        busy = stack.enter_context(connected(narrow))
        box = made(narrow)
        upgraded(busy, f"/v2/sandboxes/{box}/exec/stream", key="ours")
        idle = [stack.enter_context(connected(narrow)) for _ in range(3 * MOST)]
        with narrow.client() as client:
            assert client.get("/v2/sandboxes").status_code == 200
        with contextlib.suppress(ConnectionResetError):
            assert idle[0].recv(1) == b"", "the one that was idle longest"
        busy.sendall(frame(PING, b"still here"))
        assert (PONG, b"still here") in frames(busy, b"still here")


def test_one_tenant_holds_half_of_the_connections_at_most(narrow: Running) -> None:
    box = made(narrow)
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(connected(narrow)) for _ in range(MOST // 2)]
        for peer in held:
            assert b" 101 " in upgraded(peer, f"/v2/sandboxes/{box}/exec/stream", key="ours")
        with narrow.client() as more, narrow.client(key="theirs") as other:
            refused = more.get("/v2/sandboxes")
            assert (refused.status_code, refused.json()["error"]) == (429, "TooManyRequests")
            assert int(refused.headers["retry-after"]) > 0
            assert other.get("/v2/sandboxes").status_code == 200
            assert more.get("/health").status_code == 200
