"""Storages for saved files: a directory, and a server that speaks S3 over HTTP."""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from orchard_env.kubernetes.snapshots.config import SnapshotConfig

GENEROUS_S = 60.0
_CREDENTIALS = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing", "AWS_REGION": "us-east-1"}


@pytest.fixture(scope="session")
def s3_server() -> Iterator[str]:
    """The URL of moto's server, a process of its own, with the bucket `saved`."""
    pytest.importorskip("moto", reason="pip install 'moto[s3]' flask flask-cors")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, env={**os.environ, **_CREDENTIALS}, stdout=quiet, stderr=quiet) as server:
        try:
            _make_bucket(url, server)
            yield url
        finally:
            server.terminate()


def _make_bucket(url: str, server: subprocess.Popen[bytes]) -> None:
    ends = time.monotonic() + GENEROUS_S
    wanted = urllib.request.Request(f"{url}/saved", method="PUT")
    while True:
        try:
            with urllib.request.urlopen(wanted, timeout=GENEROUS_S):
                return
        except urllib.error.URLError:
            assert server.poll() is None, "moto's server ended"
            assert time.monotonic() < ends, "moto's server does not answer"
            time.sleep(0.1)


@pytest.fixture(scope="session")
def settings(
    s3_server: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., SnapshotConfig]]:
    """A storage of its own for each call, by its kind: `file` or `s3`."""

    def made(kind: str, **changes: object) -> SnapshotConfig:
        if kind == "file":
            url, options = tmp_path_factory.mktemp("storage").as_uri(), {}
        else:
            url = f"s3://saved/{secrets.token_hex(4)}"
            options = {"endpoint": s3_server, "allow_http": "true"}
        return SnapshotConfig.model_validate({"url": url, "options": options, **changes})

    with pytest.MonkeyPatch.context() as environment:
        for name, value in _CREDENTIALS.items():
            environment.setenv(name, value)
        yield made


def path_of(config: SnapshotConfig) -> Path:
    """Where a storage of kind `file` lies."""
    return Path(config.url.removeprefix("file://"))
