"""`orchard env top`, on a real service and on hostile words."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from orchard_env.cli.app import app
from orchard_env.cli.top_figures import Since, age, dollars
from orchard_env.cli.top_view import drawing
from orchard_env.types.overview import Overview
from rich.cells import cell_len
from rich.console import Console
from typer.testing import CliRunner

from ..service.observe.conftest import ADMIN, ALICE, keys, make, served
from ..service.observe.hostile import overview
from ..service.running import GENEROUS_S, Running

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
    assert [age(s) for s in (5, 600, 9000, 500_000)] == ["5s", "10m", "2.5h", "6d"]
    assert dollars(0.5) == "$0.5000"


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


@pytest.mark.slow
def test_it_lives_on_a_terminal_until_ctrl_c_and_gives_it_back(service: Running, key: Path) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "orchard_core.cli.main", "env", "top", "--url", service.url]
    process = subprocess.Popen(
        [*command, "--key-file", str(key), "--every", "0.2"],
        stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100", "LINES": "30"},
    )  # fmt: skip
    os.close(theirs)
    try:
        said = _until(ours, b"", b"to-be-seen", times=2)
        process.send_signal(signal.SIGINT)
        said = _until(ours, said, b"\x1b[?1049l")
        assert process.wait(GENEROUS_S) == 0
        assert b"Traceback" not in said
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def _until(terminal: int, said: bytes, wanted: bytes, times: int = 1) -> bytes:
    until = time.monotonic() + GENEROUS_S
    while said.count(wanted) < times:
        assert time.monotonic() < until, said
        if select.select([terminal], [], [], 1.0)[0]:
            said += os.read(terminal, 1 << 16)
    return said
