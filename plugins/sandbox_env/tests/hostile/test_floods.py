"""Clients that open, send or hold more than is sensible: what it costs the service is bounded."""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Iterator

import pytest
from orchard_env.service.bounded_socket import FRAGMENTS_MAX
from orchard_env.service.seams import Tenant

from orchard_core import load_provider

from ..service.running import KnownKeys, Running, parts_of, running
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
