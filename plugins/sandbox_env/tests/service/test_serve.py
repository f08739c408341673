"""`orchard serve` as its users run it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from .running import GENEROUS_S, until

ORCHARD = [sys.executable, "-m", "orchard_core.cli.main", "serve"]


REFUSALS = """
import contextlib, io, json, sys
from orchard_core.cli.main import app
told = []
for flags in json.load(sys.stdin):
    said, code = io.StringIO(), 0
    with contextlib.redirect_stderr(said):
        try:
            app(["serve", *flags], prog_name="orchard")
        except SystemExit as ended:
            code = ended.code
    told.append((code, said.getvalue()))
print(json.dumps(told))
"""
"""The command once for each of several sets of flags, in one interpreter: its start is what costs."""


@contextmanager
def served(*flags: str) -> Iterator[tuple[subprocess.Popen[str], httpx.Client]]:
    """The command, serving on a free port, and a client of it."""
    process = subprocess.Popen(
        [*ORCHARD, "--port", "0", "--json", *flags], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        told = json.loads(process.stdout.readline())
        with httpx.Client(base_url=told["url"], timeout=GENEROUS_S) as client:
            yield process, client
    finally:
        process.kill()
        process.communicate()


def refused(*flags: str) -> str:
    """What the command says when it does not start."""
    done = subprocess.run([*ORCHARD, *flags], capture_output=True, text=True, timeout=GENEROUS_S, check=False)
    assert done.returncode == 2, done.stderr
    return done.stderr


def lines(process: subprocess.Popen[str]) -> list[dict[str, Any]]:
    """Its log to the end."""
    _, log = process.communicate(timeout=GENEROUS_S)
    return [json.loads(line) for line in log.splitlines()]


def test_sigterm_ends_a_service_whose_sandboxes_end_with_it_and_it_says_so() -> None:
    with served("--provider", "process") as (process, client):
        made = client.post("/sandboxes", json={"image": "host", "block_network": False})
        assert made.status_code == 200, made.text
        sandbox = made.json()["sandbox_id"]
        job = client.post(f"/sandboxes/{sandbox}/exec", json={"command": "echo $PPID; sleep 3000"}).json()
        assert client.get(f"/jobs/{job['job_id']}").json()["status"] == "running"
        process.send_signal(signal.SIGTERM)
        log = lines(process)
        assert process.returncode == 0
    said = [line["message"] for line in log if line["level"] == "warning"]
    assert any("1 running jobs end" in line for line in said)
    assert any("1 sandboxes are destroyed" in line for line in said)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[httpx.Client, Path]]:
    """One with a file of settings, ended by Ctrl-C, and its log."""
    folder = tmp_path_factory.mktemp("shared")
    config, log = folder / "serve.yaml", folder / "log"
    config.write_text("service: {namespace: mine, image_fallback: false}\nprovider: {}\n")
    flags = ["--provider", "process", "--config", str(config), "--image-fallback"]
    with log.open("wb") as stderr:
        process = subprocess.Popen(
            [*ORCHARD, "--port", "0", "--json", *flags], stdout=subprocess.PIPE, stderr=stderr, text=True
        )
    assert process.stdout is not None
    try:
        with httpx.Client(
            base_url=json.loads(process.stdout.readline())["url"], timeout=GENEROUS_S
        ) as client:
            yield client, log
        process.send_signal(signal.SIGINT)
        assert process.wait(GENEROUS_S) == 0
    finally:
        process.kill()
        process.communicate()


Shared = tuple[httpx.Client, Path]


@pytest.mark.slow
@pytest.mark.xdist_group("serve")
def test_a_page_in_a_browser_cannot_speak_to_a_service_without_keys(shared: Shared) -> None:
    client, _ = shared
    assert client.get("/health", headers={"Origin": "http://evil.example"}).status_code == 403
    rebound = client.post("/sandboxes", content=b'{"image": "host"}', headers={"Host": "evil.example:8000"})
    assert (rebound.status_code, rebound.json()["error"]) == (403, "KeyRefused")
    local = client.get("/health", headers={"Host": "localhost:1", "Origin": "http://localhost:1"})
    assert local.status_code == 200


@pytest.mark.slow
@pytest.mark.xdist_group("serve")
def test_each_request_is_a_line_of_json_without_its_secrets(shared: Shared) -> None:
    client, log = shared
    answer = client.get("/sandboxes/nobody?api_key=query-secret", headers={"X-API-Key": "header-secret"})
    until(lambda: "/sandboxes/nobody" in log.read_text(), "the request is in the log")
    said = [json.loads(line) for line in log.read_text().splitlines()]
    line = next(line for line in said if line.get("path") == "/sandboxes/nobody")
    assert line["request_id"] == answer.json()["request_id"]
    assert (line["method"], line["status"], line["tenant"]) == ("GET", 404, "local")
    assert "secret" not in json.dumps(said)


REFUSED: tuple[tuple[tuple[str, ...], str], ...] = (
    (("--host", "0.0.0.0"), "--keys"),
    (("--provider", "no-such-provider"), "no-such-provider"),
    (("--keys", "/no/such/file"), "/no/such/file"),
    (("--tls-cert", __file__), "--tls-key"),
    (("--log-level", "loud"), "loud"),
    (("--config", "/no/such/file"), "/no/such/file"),
    (("--provider-option", "x"), "NAME=VALUE"),
    (("--provider", "kubernetes", "--provider-option", "kubeconfig=/no/such/file"), "/no/such/file"),
)
"""Flags, and a word of why not."""


def test_what_cannot_be_served_is_refused_before_anything_starts() -> None:
    done = subprocess.run(
        [sys.executable, "-c", REFUSALS],
        input=json.dumps([flags for flags, _ in REFUSED]),
        capture_output=True,
        text=True,
        timeout=GENEROUS_S,
        check=True,
    )
    told = json.loads(done.stdout)
    assert [code for code, _ in told] == [2] * len(REFUSED)
    for (flags, says), (_, said) in zip(REFUSED, told, strict=True):
        assert says in said, flags


def test_a_setting_that_does_not_exist_is_named(tmp_path: Path) -> None:
    config = tmp_path / "serve.yaml"
    config.write_text("service: {no_such_setting: 1}\n")
    assert "no_such_setting" in refused("--config", str(config))


@pytest.mark.slow
@pytest.mark.xdist_group("serve")
def test_a_port_that_is_taken_is_told(shared: Shared) -> None:
    assert "--port" in refused("--provider", "process", "--port", str(shared[0].base_url.port))


@pytest.mark.slow
@pytest.mark.xdist_group("serve")
def test_settings_come_from_the_file_and_flags_win(shared: Shared) -> None:
    asked = {"image": "python:3.12", "block_network": False}
    made = shared[0].post("/sandboxes", json=asked).raise_for_status().json()
    assert (made["namespace"], made["image"]) == ("mine", "python:3.12")
    assert made["labels"]["orchard.dev/isolated"] == "false"
    assert made["labels"]["orchard.dev/image-fallback"] == "host"


@pytest.mark.slow
def test_a_killed_service_leaves_nothing_running_that_nobody_could_find(tmp_path: Path) -> None:
    with served("--provider", "process") as (process, client):
        made = client.post("/sandboxes", json={"image": "host", "block_network": False}).json()["sandbox_id"]
        mark = tmp_path / "process"
        command = f"echo $$ > {mark}.new; mv {mark}.new {mark}; sleep 3000"
        client.post(f"/sandboxes/{made}/exec", json={"command": command}).raise_for_status()
        until(mark.exists, "the command runs")
        program = Path("/proc", mark.read_text().strip(), "cmdline")
        assert program.read_bytes()
        process.kill()
        process.wait(GENEROUS_S)
        until(lambda: not _runs(program), "the command ends")


def _runs(program: Path) -> bool:
    """Whether the process of that command line does; a zombie has none."""
    try:
        return bool(program.read_bytes())
    except OSError:
        return False
