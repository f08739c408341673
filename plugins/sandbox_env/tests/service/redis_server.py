"""A real Redis server of a test's own: with a password, nothing on disk, and no key ever evicted."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from orchard_env.service.state.redis.settings import RedisSettings
from pydantic import SecretStr

PASSWORD = "a-password-that-no-log-may-show"


class RedisServer:
    """One server, on a Unix socket; it can be killed, stopped and started again."""

    def __init__(self, folder: Path, env: Mapping[str, str] | None = None) -> None:
        """`env` is over this process's own."""
        self._env = {**os.environ, **(env or {})}
        self.socket = folder / "redis.sock"
        self.url = f"unix://{self.socket}"
        self._process: subprocess.Popen[bytes] | None = None

    def settings(self, **other: object) -> RedisSettings:
        """How to reach it."""
        return RedisSettings.model_validate(
            {"url": SecretStr(self.url), "password": SecretStr(PASSWORD), "timeout_s": 5.0, **other}
        )

    def start(self, *options: str) -> None:
        """Start it, empty, and wait until it answers."""
        bound = ("--port", "0", "--unixsocket", str(self.socket), "--requirepass", PASSWORD)
        kept = ("--save", "", "--appendonly", "no", "--maxmemory-policy", "noeviction")
        self._process = subprocess.Popen(
            ["redis-server", *bound, *kept, *options],
            stdout=subprocess.DEVNULL,
            cwd=self.socket.parent,
            env=self._env,
        )
        until = time.monotonic() + 30
        while self.ask("ping") != "PONG":
            assert time.monotonic() < until, "the server does not answer"
            time.sleep(0.02)

    def ask(self, *command: str) -> str:
        """What the server's own client prints."""
        done = subprocess.run(
            ["redis-cli", "-s", str(self.socket), "-a", PASSWORD, "--no-auth-warning", *command],
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout.strip()

    def send(self, number: signal.Signals) -> None:
        """Send a signal; SIGSTOP leaves it deaf, SIGCONT wakes it."""
        assert self._process is not None
        self._process.send_signal(number)

    @property
    def running(self) -> bool:
        """Whether it was started and not killed."""
        return self._process is not None

    def kill(self) -> None:
        """kill -9, whatever state it is in."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


@contextlib.contextmanager
def running_redis(env: Mapping[str, str] | None = None) -> Iterator[RedisServer]:
    """A server until the end of the block. Skips where there is none."""
    if shutil.which("redis-server") is None:
        pytest.skip("no redis-server on this machine: tools/needs.sh installs it")
    # A socket's path is short, and pytest's folders are not.
    with tempfile.TemporaryDirectory(prefix="orchard-redis-") as folder:
        server = RedisServer(Path(folder), env)
        server.start()
        try:
            yield server
        finally:
            server.kill()


@pytest.fixture
def redis_server() -> Iterator[RedisServer]:
    """A server of this case's own."""
    with running_redis() as server:
        yield server
