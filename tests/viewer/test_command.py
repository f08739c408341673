"""`orchard view` as a user runs it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
from pathlib import Path

import aiohttp
import pytest

from orchard_core.cli.exits import Exit

from .making import make_rollout, write_run

ROOT = Path(__file__).parents[2]


@pytest.fixture
async def run(tmp_path: Path) -> Path:
    return await write_run(tmp_path / "run", [make_rollout()])


async def orchard(tmp_path: Path, *args: str) -> asyncio.subprocess.Process:
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "NO_COLOR": "1",
    }
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "orchard_core.cli.main", "view", *args, env=environment,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip


async def refused(tmp_path: Path, *args: str) -> tuple[int, str]:
    process = await orchard(tmp_path, *args)
    _, told = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode is not None
    return process.returncode, " ".join(told.decode().split())


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
async def test_it_prints_a_link_serves_and_ends_in_order(
    tmp_path: Path, run: Path, how: signal.Signals
) -> None:
    process = await orchard(tmp_path, str(run), "--no-open", "--json")
    assert process.stdout is not None
    text = b""
    while not text.rstrip().endswith(b"}"):
        text += await asyncio.wait_for(process.stdout.readline(), 60)
    told = json.loads(text)
    assert told["url"].startswith("http://127.0.0.1:")
    async with (
        aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as http,
        http.get(told["url"]) as answer,
    ):
        assert answer.status == 200
        assert "token" not in str(answer.url)
        assert "react · model · bench" in await answer.text()
    process.send_signal(how)
    _, said = await asyncio.wait_for(process.communicate(), 30)
    assert process.returncode == Exit.OK
    assert "for another browser: http://127.0.0.1:" in said.decode()
    assert "Traceback" not in said.decode()


async def test_a_path_that_is_nothing_is_told(tmp_path: Path) -> None:
    code, told = await refused(tmp_path, str(tmp_path / "nowhere"))
    assert code == Exit.USAGE
    assert "there is nothing at" in told


async def test_a_path_that_is_something_else_is_told(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text("{}\n")
    code, told = await refused(tmp_path, str(tmp_path / "rows.jsonl"))
    assert code == Exit.USAGE
    assert "is no run, matrix or dataset" in told
    assert "orchard data import" in told


async def test_a_taken_port_is_told(tmp_path: Path, run: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        code, told = await refused(tmp_path, str(run), "--no-open", "--port", str(port))
    assert code == Exit.USAGE
    assert f"port {port} of 127.0.0.1 is taken" in told


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])
async def test_other_machines_are_kept_out_unless_the_user_knows(
    tmp_path: Path, run: Path, host: str
) -> None:
    code, told = await refused(tmp_path, str(run), "--no-open", "--host", host)
    assert code == Exit.USAGE
    assert "--allow-remote-I-know" in told


async def test_a_name_is_no_address(tmp_path: Path, run: Path) -> None:
    code, told = await refused(tmp_path, str(run), "--host", "example.com")
    assert code == Exit.USAGE
    assert "is no IP address" in told
