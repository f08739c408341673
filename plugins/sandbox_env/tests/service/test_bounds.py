"""What a hostile client may hold open, and for how long."""

from __future__ import annotations

import contextlib
import logging
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx
import pytest
from orchard_env.service.listener import Connection
from orchard_env.service.log import ACCESS, SERVICE
from orchard_env.service.seams import Tenant

from orchard_core import load_provider

from .running import GENEROUS_S, KnownKeys, Running, parts_of, running, until


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


def test_bodies_that_are_held_have_a_bound_together_and_keep_no_other_tenant_out(isolation: None) -> None:
    """Each may be as large as any: hundreds of them would take all the memory there is."""
    keys = KnownKeys(ours=Tenant(name="ours"), theirs=Tenant(name="theirs"))
    part = b" " * 900_000
    with (
        running(lambda: parts_of(load_provider("process"), tenancy=keys, body_mb=1, bodies_mb=4)) as service,
        contextlib.ExitStack() as stack,
    ):
        for _ in range(2):
            peer = stack.enter_context(connect(service))
            head = (
                f"POST /sandboxes HTTP/1.1\r\nHost: x\r\nX-API-Key: ours\r\nContent-Length: {len(part) + 1}"
            )
            peer.sendall(head.encode() + b"\r\n\r\n" + part)
        with service.client(key="ours") as client, service.client(key="theirs") as other:

            def posted(by: httpx.Client) -> httpx.Response:
                return by.post("/sandboxes", content=part)

            until(lambda: posted(client).status_code == 503, "a refusal")
            refused = posted(client)
            assert (refused.json()["error"], "MiB of requests' bodies" in refused.text) == (
                "ServiceOverloaded",
                True,
            )
            assert int(refused.headers["retry-after"]) > 0
            assert posted(other).status_code == 400, "it is no JSON, but it was read"
            stack.close()
            until(lambda: posted(client).status_code == 400, "room again")


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    """Every line that the service logs, whatever a case before this has done to its loggers."""
    with caplog.at_level(logging.INFO, "orchard.service"), caplog.at_level(logging.INFO, ACCESS.name):
        SERVICE.addHandler(caplog.handler)
        yield caplog
        SERVICE.removeHandler(caplog.handler)


@pytest.mark.parametrize("path", ["/sandboxes", "/v2/sandboxes", "{}/files?path=/tmp/x", "{}/execs/x/stdin"])
def test_who_leaves_in_the_midst_of_a_body_is_no_failure_of_the_service(
    hurried: Running, logged: pytest.LogCaptureFixture, path: str
) -> None:
    with hurried.client() as client:
        made = client.post("/v2/sandboxes", params={"wait": GENEROUS_S}, json={}).json()
        at = f"/v2/sandboxes/{made['id']}"
        asked = {"id": "x", "command": "cat", "stdin_stream": True}
        client.post(f"{at}/execs", json=asked).raise_for_status()
        logged.clear()
        with connect(hurried) as peer:
            method = "PUT" if "files" in path else "POST"
            head = f"{method} {path.format(at)} HTTP/1.1\r\nHost: x\r\nContent-Length: 9000\r\n\r\n"
            peer.sendall(head.encode() + b"x")

        def told() -> list[int]:
            fields = [
                getattr(record, "fields", {}) for record in logged.records if record.name == ACCESS.name
            ]
            return [one["status"] for one in fields if one["path"] == path.format(at).partition("?")[0]]

        until(told, "the request is over")
        assert told()[0] < 500
        assert not [record for record in logged.records if record.exc_info]
        client.delete(at)
