"""A client's faults: always 4xx, always with a message, never anything of another's."""

from __future__ import annotations

import base64
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from orchard_core import load_provider

from .running import Running, parts_of, running


@pytest.fixture(scope="module")
def strict(isolation: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A service with small bounds."""
    with running(lambda: parts_of(load_provider("local"), body_mb=1, file_mb=1)) as served:
        yield served


@pytest.fixture
def narrow(strict: Running) -> Iterator[httpx.Client]:
    """A client of it."""
    with strict.client() as speaking:
        yield speaking


@pytest.fixture(scope="module")
def small(strict: Running) -> str:
    """A sandbox of it."""
    with strict.client() as speaking:
        made = str(speaking.post("/sandboxes", json={"image": "host"}).json()["sandbox_id"])
        speaking.get(f"/sandboxes/{made}/wait").raise_for_status()
        return made


def problem(answer: httpx.Response, status: int) -> dict[str, Any]:
    """The refusal, which must be whole."""
    told = dict(answer.json())
    assert answer.status_code == status, told
    assert told.keys() == {"detail", "error", "message", "hint", "request_id"}
    assert told["detail"] == told["message"] != ""
    assert told["request_id"] == answer.headers["x-request-id"]
    return told


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ({}, "image"),
        ({"image": 5}, "image"),
        ({"image": "host", "cpu": "many"}, "cpu"),
        ({"image": "host", "cpu": "0"}, "cpu"),
        ({"image": "host", "memory": "16Q"}, "memory"),
        ({"image": "host", "memory": -1}, "memory"),
        ({"image": "host", "timeout": -5}, "timeout"),
        ({"image": "host", "timeout": "soon"}, "timeout"),
        ({"image": "host", "sandbox_id": "../other"}, "sandbox_id"),
        ({"image": "host", "sandbox_id": "UPPER"}, "sandbox_id"),
        ({"image": "host", "sandbox_id": "x" * 64}, "sandbox_id"),
        ({"image": "host", "labels": {"orchard.dev/tenant": "admin"}}, "orchard.dev/"),
        ({"image": "python:3.12"}, "image"),
        ({"image": "rootfs:/etc"}, "image"),
        ({"image": "build:/etc"}, "image"),
    ],
)
def test_a_sandbox_that_makes_no_sense_is_refused(
    narrow: httpx.Client, body: dict[str, Any], names: str
) -> None:
    assert names in problem(narrow.post("/sandboxes", json=body), 422)["detail"]


@pytest.mark.parametrize("raw", [b"", b"{", b"\xff\xfe", b'{"image": NaN}', b"[" * 100_000])
def test_a_body_that_is_no_json_is_refused(narrow: httpx.Client, raw: bytes) -> None:
    assert "JSON" in problem(narrow.post("/sandboxes", content=raw), 400)["detail"]


@pytest.mark.parametrize("body", [[], None, "host", 7, True])
def test_a_body_of_another_shape_is_refused(narrow: httpx.Client, body: object) -> None:
    problem(narrow.post("/sandboxes", json=body, content=None if body is not None else b"null"), 422)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"command": ""},
        {"command": []},
        {"command": [1]},
        {"command": {"a": 1}},
        {"command": "true", "timeout_seconds": 0},
        {"command": "true", "timeout_seconds": -1},
        {"command": "true", "env": {"A": 1}},
        {"command": "true", "env": ["A"]},
        {"command": "true", "wait": "perhaps"},
        {"command": "true", "exec_id": "a/../b"},
        {"command": "true\0", "wait": True},
        {"command": ["true", "a\0"], "wait": True},
        {"command": "true", "env": {"A=B": "c"}, "wait": True},
        {"command": "true", "env": {"": "c"}, "wait": True},
        {"command": "true", "cwd": "relative/not/there", "wait": True},
        {"command": ["/etc"], "wait": True},
    ],
)
def test_a_command_that_makes_no_sense_is_refused(
    narrow: httpx.Client, small: str, body: dict[str, Any]
) -> None:
    answer = narrow.post(f"/sandboxes/{small}/exec", json=body)
    problem(answer, answer.status_code)
    assert answer.status_code in (400, 422)


def test_half_a_surrogate_pair_is_refused_and_its_answer_can_be_read(
    narrow: httpx.Client, small: str
) -> None:
    answer = narrow.post(f"/sandboxes/{small}/exec", content=b'{"command": "echo \\ud800", "wait": true}')
    problem(answer, answer.status_code)
    assert answer.status_code in (400, 422)


@pytest.mark.parametrize(
    "sandbox_id", ["nobody", "%2e%2e", "a%2fb", "%00", "A", "x" * 300, "%ff", "sb-*", "' or 1=1"]
)
@pytest.mark.parametrize(
    "call", ["GET ", "GET /wait", "POST /heartbeat", "DELETE ", "POST /exec", "GET /files?path=/"]
)
def test_a_sandbox_that_is_not_there_is_404(narrow: httpx.Client, sandbox_id: str, call: str) -> None:
    method, _, rest = call.partition(" ")
    answer = narrow.request(method, f"/sandboxes/{sandbox_id}{rest}", json={"command": "true"})
    assert answer.status_code in (404, 405), answer.text
    assert answer.json()["detail"]


@pytest.mark.parametrize("job_id", ["nope", "sb-1.", ".x", "sb.sb.sb", "%2e%2e%2fetc", "x" * 500, "a%00b.c"])
def test_a_job_that_is_not_there_is_404(narrow: httpx.Client, small: str, job_id: str) -> None:
    for path in (job_id, f"{small}.{job_id}"):
        assert narrow.get(f"/jobs/{path}").status_code == 404


def test_a_body_over_the_limit_is_413(narrow: httpx.Client, small: str) -> None:
    content = base64.b64encode(bytes(2 << 20)).decode()
    refused = narrow.post(f"/sandboxes/{small}/files", json={"path": "big", "content": content})
    assert "/v2" in problem(refused, 413)["hint"]


def test_a_body_over_the_limit_that_does_not_tell_its_size_is_413(narrow: httpx.Client, small: str) -> None:
    def pieces() -> Iterator[bytes]:
        yield b'{"path": "big", "content": "'
        for _ in range(64):
            yield b"A" * 65536
        yield b'"}'

    problem(narrow.post(f"/sandboxes/{small}/files", content=pieces()), 413)


def test_a_file_over_the_limit_is_413_and_not_held_in_memory(narrow: httpx.Client, small: str) -> None:
    made = {"command": "truncate -s 3G huge", "wait": True}
    narrow.post(f"/sandboxes/{small}/exec", json=made).raise_for_status()
    problem(narrow.get(f"/sandboxes/{small}/files", params={"path": "huge"}), 413)


def test_a_file_that_never_ends_is_413(narrow: httpx.Client, small: str) -> None:
    answer = narrow.get(f"/sandboxes/{small}/files", params={"path": "/dev/zero"})
    problem(answer, answer.status_code)
    assert answer.status_code in (413, 422)


@pytest.mark.parametrize("content", ["not base64!", "YQ", "é"])
def test_content_that_is_no_base64_is_refused(narrow: httpx.Client, small: str, content: str) -> None:
    assert (
        "base64"
        in problem(narrow.post(f"/sandboxes/{small}/files", json={"path": "f", "content": content}), 422)[
            "detail"
        ]
    )


@pytest.mark.parametrize("value", ["-1", "nan", "soon", "1e999x"])
def test_a_wait_that_is_no_number_is_refused(narrow: httpx.Client, small: str, value: str) -> None:
    assert (
        "timeout" in problem(narrow.get(f"/sandboxes/{small}/wait", params={"timeout": value}), 422)["detail"]
    )


def test_unknown_paths_and_methods_are_refused_in_the_same_shape(narrow: httpx.Client) -> None:
    problem(narrow.get("/no/such/path"), 404)
    answer = narrow.put("/sandboxes", json={})
    problem(answer, 405)
    assert "POST" in answer.headers["allow"]


def test_paths_inside_stay_inside(narrow: httpx.Client, small: str, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("host")
    for path in (
        str(secret),
        f"../../../../../../{secret}",
        f"/proc/1/root{secret}",
        f"/proc/self/root{secret}",
    ):
        assert narrow.get(f"/sandboxes/{small}/files", params={"path": path}).status_code in (403, 404)


def _speak(service: Running, raw: bytes) -> bytes:
    """What comes back, until the service closes."""
    address = urlsplit(service.url)
    with socket.create_connection((str(address.hostname), int(address.port or 0)), timeout=60) as peer:
        peer.sendall(raw)
        told = b""
        try:
            while piece := peer.recv(65536):
                told += piece
        except ConnectionResetError:
            pass
        return told


def test_what_is_not_http_is_refused_and_closed(strict: Running) -> None:
    assert _speak(strict, b"\x16\x03\x01\x00\xff" * 10).startswith(b"HTTP/1.1 400")


def test_a_head_without_end_is_refused_and_closed(strict: Running) -> None:
    assert b" 431 " in _speak(strict, b"GET / HTTP/1.1\r\n" + b"x-filler: " + b"a" * 200_000)


def test_an_answer_names_its_request_and_takes_the_clients_name_only_if_it_is_one(strict: Running) -> None:
    with strict.client() as speaking:
        assert speaking.get("/", headers={"x-request-id": "mine-1"}).headers["x-request-id"] == "mine-1"
        forged = speaking.get("/", headers={"x-request-id": 'a" b'}).headers["x-request-id"]
        assert forged.isalnum()


def test_no_client_can_make_the_service_say_500(narrow: httpx.Client, small: str) -> None:
    odd: list[Any] = [None, True, 0, -1, 1e308, "", "a", "\0", "é" * 1000, [], {}, [[]], {"a": {}}]
    for path, fields in {
        "/sandboxes": (
            "image",
            "cpu",
            "memory",
            "timeout",
            "env",
            "labels",
            "ttl",
            "sandbox_id",
            "block_network",
        ),
        f"/sandboxes/{small}/exec": ("command", "cwd", "env", "timeout_seconds", "login_shell", "exec_id"),
        f"/sandboxes/{small}/files": ("path", "content", "mode"),
        f"/sandboxes/{small}/apply_patch": ("patch", "timeout_seconds", "cwd"),
    }.items():
        sound = {"image": "host", "command": "true", "wait": True, "path": "f", "content": "", "patch": "p"}
        for field in fields:
            for value in odd:
                answer = narrow.post(path, content=json.dumps(sound | {field: value}))
                assert answer.status_code < 500, (path, field, value, answer.text)
                if path == "/sandboxes" and answer.status_code == 200:
                    narrow.delete(f"/sandboxes/{answer.json()['sandbox_id']}")
