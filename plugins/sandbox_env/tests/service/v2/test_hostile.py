"""What hostile clients send: refused with words, never a failure of the service."""

from __future__ import annotations

import contextlib
import json
import socket
from urllib.parse import urlsplit

import httpx
import pytest

from ..running import Running


@pytest.fixture
def at(sandbox: str) -> str:
    """The path of the module's sandbox."""
    return f"/v2/sandboxes/{sandbox}"


def speak(service: Running, raw: bytes) -> bytes:
    """All that the service says to these bytes, until it closes."""
    parts = urlsplit(service.url)
    with socket.create_connection((parts.hostname or "", parts.port or 0), timeout=60) as connection:
        said = b""
        with contextlib.suppress(OSError):  # refused and closed before it had heard everything
            connection.sendall(raw)
            connection.shutdown(socket.SHUT_WR)
            while piece := connection.recv(65536):
                said += piece
        return said


def statuses(said: bytes) -> list[int]:
    """Of all answers on one connection."""
    return [int(part.split(b" ", 1)[0]) for part in said.split(b"HTTP/1.1 ")[1:]]


@pytest.mark.parametrize(
    "head",
    [
        "Content-Length: 5\r\nContent-Length: 40\r\n",
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Content-Length: +5\r\n",
        "Content-Length: 5, 5\r\n",
        "Content-Length: -1\r\n",
        "Content-Length : 5\r\n",
        "X-Odd\x00: 1\r\n",
        "X-Folded: a\r\n b\r\n",
    ],
)
def test_a_request_that_two_parsers_read_differently_is_refused_and_nothing_behind_it_runs(
    service: Running, client: httpx.Client, at: str, head: str
) -> None:
    smuggled = (
        f"PUT {at}/agent/v1/files?path=/workspace/smuggled HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx"
    )
    raw = f"PUT {at}/agent/v1/files?path=/workspace/odd HTTP/1.1\r\nHost: x\r\n{head}\r\n0\r\n\r\n{smuggled}"
    answers = statuses(speak(service, raw.encode("latin-1")))
    assert all(status < 500 for status in answers)
    assert answers[-1:] == [400]
    assert client.get(f"{at}/files", params={"path": "/workspace/smuggled"}).status_code == 404


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b"[" * 100_000,
        b'{"command":' + b"[" * 5000 + b"]" * 5000 + b"}",
        b'{"command": "\xff\xfe"}',
        b'{"command": "\\ud800"}',
        b'{"command": NaN}',
        b'{"command": "true", "timeout_s": 1e999}',
        b'{"command": "true", "timeout_s": "NaN"}',
        b'{"command": "a\\u0000b"}',
        b'{"command": ["a", null]}',
        b'{"command": "true", "env": {"A=B": "c"}}',
        b'{"command": "true", "env": {"": "c"}}',
        b'{"command": "true", "cwd": "\\u0000"}',
        b'{"command": "true", "user": "\\n"}',
        b'{"command": "true", "id": "a/b"}',
        b'{"command": "true", "id": ""}',
        b'{"command": "true", "output_limit": 99999999999999999999}',
        b'{"command": "true", "lane": "../.."}',
        b'{"command": "true"} trailing',
        b"command=true",
    ],
)
def test_a_body_that_makes_no_sense_is_refused_with_words(client: httpx.Client, at: str, body: bytes) -> None:
    answer = client.post(f"{at}/exec", content=body, headers={"Content-Type": "application/json"})
    assert 400 <= answer.status_code < 500, (body[:60], answer.text)
    assert answer.json()["message"]


@pytest.mark.parametrize(
    "name",
    [
        "..",
        ".",
        "%2e%2e",
        "a%00b",
        "A",
        "x" * 64,
        "x" * 5000,
        "%ff%fe",
        "\xe4",
        "a%2Fb",
        "a b",
        "-x",
        "*",
        "{}",
    ],
)
def test_an_id_that_nobody_has_is_not_found(service: Running, name: str) -> None:
    for path in ("", "/exec", "/agent/v1/health", "/files?path=/"):
        raw = f"GET /v2/sandboxes/{name}{path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        said = speak(service, raw.encode("latin-1"))
        assert 400 <= statuses(said)[0] < 500, said


def test_oversized_heads_addresses_and_bodies_are_refused(
    client: httpx.Client, service: Running, at: str
) -> None:
    big = client.post(
        f"{at}/exec",
        content=b'{"command": "' + b"x" * (49 << 20) + b'"}',
        headers={"Content-Type": "application/json"},
    )
    assert (big.status_code, big.json()["error"]) == (413, "BodyTooLarge")
    long = client.get(f"{at}/files?path=/{'a' * 40_000}")
    assert 400 <= long.status_code < 500
    many = (
        f"GET {at} HTTP/1.1\r\nHost: x\r\n" + "".join(f"X-{n}: {'y' * 500}\r\n" for n in range(1000)) + "\r\n"
    )
    assert statuses(speak(service, many.encode())) in ([431], [400], [])


def test_duplicated_headers_change_nothing(service: Running, at: str) -> None:
    twice = "Host: x\r\nHost: y\r\nRange: bytes=0-1\r\nRange: bytes=5-\r\n"
    raw = f"GET {at} HTTP/1.1\r\n{twice}Connection: close\r\n\r\n"
    assert all(status < 500 for status in statuses(speak(service, raw.encode())))


@pytest.mark.parametrize(
    "frame",
    [
        "",
        "{",
        "[]",
        "null",
        '{"command": 5}',
        '{"attach": "never"}',
        '{"attach": "../x"}',
        '{"command": "true", "x": 1}',
        "[" * 5000,
    ],
)
async def test_a_socket_is_told_what_is_wrong_with_its_first_frame(
    service: Running, at: str, frame: str
) -> None:
    import aiohttp

    async with aiohttp.ClientSession(service.url) as session, session.ws_connect(f"{at}/exec/stream") as ws:
        await ws.send_str(frame)
        told = json.loads((await ws.receive()).data)
        assert told["event"] == "error"
        assert told["message"]
