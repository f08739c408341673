"""`orchard env top`, on a real service and on hostile words."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest
from orchard_env.cli.app import app
from orchard_env.cli.top_figures import Since
from orchard_env.cli.top_view import drawing
from orchard_env.figures import dollars, span
from orchard_env.types.overview import Overview
from rich.cells import cell_len
from rich.console import Console
from typer.testing import CliRunner

from orchard_core import OrchardError

from ..service.observe.conftest import ADMIN, ALICE, keys, make, served
from ..service.observe.hostile import overview
from ..service.running import GENEROUS_S, Running

ORCHARD = [sys.executable, "-m", "orchard_core.cli.main"]
NOBODY = dict.fromkeys(("SANDBOX_BASE_URL", "SANDBOX_API_KEY", "SANDBOX_CA_FILE"))


@pytest.fixture(scope="module")
def service() -> Iterator[Running]:
    with served(tenancy=keys(), key=ADMIN) as running:
        with running.client() as client:
            make(client, sandbox_id="to-be-seen")
        yield running


@pytest.fixture
def key(tmp_path: Path) -> Path:
    path = tmp_path / "key"
    path.write_text(ADMIN + "\n")
    return path


def drawn(view: Overview, width: int, height: int = 1000) -> list[str]:
    """Its lines on a terminal so wide and high, control sequences of our own included."""
    file = io.StringIO()
    console = Console(file=file, width=width, height=height, force_terminal=True, color_system="standard")
    console.print(
        drawing(view, Since(view, None), "http://x", width=width, height=height, trouble="lost"), end=""
    )
    return file.getvalue().splitlines()


@pytest.mark.parametrize("width", [80, 150])
def test_hostile_words_move_no_cursor_and_break_no_line(width: int) -> None:
    lines = drawn(overview(), width)
    told = "\n".join(lines)
    assert not re.search("\x1b(?!\\[[0-9;]*m)", told)  # colours alone
    assert not re.search("[\x00-\x09\x0b-\x1a\x1c-\x1f\x7f-\x9f\u202e]", told)
    assert "pwned" not in told
    plain = [re.sub("\x1b\\[[0-9;]*m", "", line) for line in lines]
    assert max(map(cell_len, plain)) <= width
    assert any("IMAGE" in line for line in plain) == (width >= 100)


@pytest.mark.parametrize("height", [24, 50])
def test_lists_are_cut_to_the_terminals_height_and_it_is_said(
    height: int,
) -> None:
    lines = drawn(overview(rows=200, evil="name"), 120, height)
    assert len(lines) <= height
    assert any("more" in line for line in lines)
    assert any("SANDBOX" in line for line in lines)


def test_rates_are_of_what_happened_since_the_look_before() -> None:
    before = overview(evil="x")
    now = before.model_copy(
        update={"up_s": before.up_s + 2, "requests": before.requests + 500, "created": before.created + 1,
                "create_s": before.create_s + 0.5}
    )  # fmt: skip
    since = Since(now, before)
    assert since.rate("requests") == "250/s"
    assert since.rate("execs") == "0.0/s"
    assert since.mean("create_s", "created", "s") == "0.50 s"
    assert since.mean("overhead_s", "timed", "ms") == "1.9 ms"  # none lately: since the start


def test_a_service_that_began_anew_has_no_rates_until_the_next_look() -> None:
    before = overview(evil="x")
    now = before.model_copy(update={"up_s": 1.0, "requests": 5})
    assert Since(now, before).rate("requests") == "5"
    assert Since(now, None).rate("requests") == "5"


def test_figures_are_short() -> None:
    assert [span(s) for s in (5, 600, 9000, 500_000)] == ["5s", "10m", "2.5h", "6d"]
    assert [span(s, (" s", " min", " h", " d")) for s in (5, 600)] == ["5 s", "10 min"]
    assert [dollars(a) for a in (0, 0.0123, 1234.5)] == ["$0.00", "$0.0123", "$1,234.50"]


def test_it_prints_once_where_no_terminal_is(service: Running, key: Path) -> None:
    flags = ["top", "--url", service.url, "--key-file", str(key)]
    done = CliRunner().invoke(app, flags, env=NOBODY)
    assert done.exit_code == 0, done.output
    assert "to-be-seen" in done.stdout
    told = json.loads(CliRunner().invoke(app, [*flags, "--json"], env=NOBODY).stdout)
    assert [row["id"] for row in told["sandboxes"]] == ["to-be-seen"]
    assert Overview.model_validate(told).tenants[0].tenant == "ops"


def test_a_tenants_key_is_refused_in_words(service: Running) -> None:
    env = {**NOBODY, "SANDBOX_BASE_URL": service.url, "SANDBOX_API_KEY": ALICE}
    done = CliRunner().invoke(app, ["top", "--json"], env=env)
    assert "scope admin" in str(done.exception)


@contextmanager
def other(answer: bytes) -> Iterator[str]:
    """The address of something that is no orchard service."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.parametrize("answer", [b"{}", b"[]", b"<html>", b"\xff"])
def test_something_else_that_answers_there_is_told_from_a_service(answer: bytes) -> None:
    with other(answer) as url:
        done = CliRunner().invoke(app, ["top", "--url", url, "--json"], env=NOBODY)
    assert isinstance(done.exception, OrchardError), done.exception
    assert "/v2/overview" in done.exception.message
    assert done.exception.hint


@pytest.mark.slow
@pytest.mark.parametrize("flag", ["--json", "--plain"])
def test_a_service_that_is_away_is_told_in_words(flag: str) -> None:
    with other(b"") as url:
        pass
    done = subprocess.run(
        [*ORCHARD, "env", "top", "--url", url, flag], capture_output=True, text=True, check=False
    )
    assert done.returncode == 3
    assert f"GET {url}/v2/overview failed" in done.stderr
    assert "hint:" in done.stderr
    assert "Traceback" not in done.stderr
    assert not done.stdout


@contextmanager
def started(port: int = 0) -> Iterator[tuple[str, int]]:
    """A service in a process of its own, and its port; SIGTERM ends it."""
    process = subprocess.Popen(
        [*ORCHARD, "serve", "--provider", "process", "--port", str(port), "--json"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        url = json.loads(process.stdout.readline())["url"]
        yield url, int(url.rpartition(":")[2])
        process.terminate()
        process.wait(GENEROUS_S)
    finally:
        process.kill()
        process.communicate()


@contextmanager
def on_a_terminal(*flags: str) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """`orchard env top` on a terminal of 100 columns: our end of it, and the process."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*ORCHARD, "env", "top", "--every", "0.2", *flags],
        stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100", "LINES": "30"},
    )  # fmt: skip
    os.close(theirs)
    try:
        yield ours, process
    finally:
        process.kill()
        process.wait()
        os.close(ours)


@pytest.mark.slow
def test_the_last_state_stays_while_the_service_is_away_and_goes_on_when_it_is_back() -> None:
    with contextlib.ExitStack() as stack:
        with started() as (url, port):
            with httpx.Client(base_url=url, timeout=GENEROUS_S) as client:
                make(client, sandbox_id="before")
            terminal, process = stack.enter_context(on_a_terminal("--url", url))
            _until(terminal, b"", b"before")
        _until(terminal, b"", b"no answer:")
        _until(terminal, b"", b"before")
        with started(port) as (url, _):
            with httpx.Client(base_url=url, timeout=GENEROUS_S) as client:
                make(client, sandbox_id="after")
            _until(terminal, b"", b"after")
            process.send_signal(signal.SIGINT)
            said = _until(terminal, b"", b"\x1b[?1049l")
            assert process.wait(GENEROUS_S) == 0
            assert b"Traceback" not in said


@pytest.mark.slow
def test_it_lives_on_a_terminal_until_ctrl_c_and_gives_it_back(service: Running, key: Path) -> None:
    with on_a_terminal("--url", service.url, "--key-file", str(key)) as (terminal, process):
        said = _until(terminal, b"", b"to-be-seen", times=2)
        process.send_signal(signal.SIGINT)
        said = _until(terminal, said, b"\x1b[?1049l")
        assert process.wait(GENEROUS_S) == 0
        assert b"Traceback" not in said


def _until(terminal: int, said: bytes, wanted: bytes, times: int = 1) -> bytes:
    until = time.monotonic() + GENEROUS_S
    while said.count(wanted) < times:
        assert time.monotonic() < until, said
        if select.select([terminal], [], [], 1.0)[0]:
            said += os.read(terminal, 1 << 16)
    return said
