"""Containers behind `orchard serve`, which outlive it."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .conftest import Podman

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        find_spec("orchard_env") is None, reason="the service is another package: orchard-env[serve]"
    ),
]
GENEROUS_S = 120


class Service:
    """One process of it, as its clients see it."""

    def __init__(self, process: subprocess.Popen[str], url: str) -> None:
        self.process = process
        self._url = url

    def ask(self, path: str, body: object = None, method: str | None = None) -> dict[str, Any]:
        """The answer, of status 200."""
        data = None if body is None else json.dumps(body).encode()
        asked = urllib.request.Request(self._url + path, data=data, method=method)
        with urllib.request.urlopen(asked, timeout=GENEROUS_S) as answer:
            said: dict[str, Any] = json.load(answer)
            return said


@contextmanager
def served(podman: Podman, state: Path) -> Iterator[Service]:
    """A service over this engine; it is killed at the end."""
    options = {"engine": podman.socket, "state_dir": str(state)}
    chosen = [word for name, value in options.items() for word in ("--provider-option", f"{name}={value}")]
    orchard = str(Path(sys.executable).with_name("orchard"))
    command = [orchard, "serve", "--provider", "container", "--port", "0", "--json", *chosen]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    try:
        yield Service(process, json.loads(process.stdout.readline())["url"])
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_a_killed_service_leaves_its_container_and_its_command_to_the_next(
    podman: Podman, tmp_path: Path
) -> None:
    with served(podman, tmp_path) as first:
        first.ask("/sandboxes", {"image": "busybox", "sandbox_id": "kept"})
        first.ask("/sandboxes/kept/wait")
        wait = "echo once >> runs; while ! test -e go; do sleep 0.05; done; cat runs"
        job = first.ask("/sandboxes/kept/exec", {"command": wait, "exec_id": "long"})["job_id"]
    with served(podman, tmp_path) as second:
        assert second.ask(f"/jobs/{job}")["status"] == "running"
        second.ask("/sandboxes/kept/files", {"path": "go", "content": ""})
        told = second.ask(f"/jobs/{job}/wait?timeout=60")
        assert (told["status"], told["stdout"]) == ("succeeded", "once\n")
        second.ask("/sandboxes/kept", method="DELETE")
        assert podman.run("ps", "--all", "--quiet") == ""
