"""The service as its operators run it, in a process that can be killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import httpx

GENEROUS_S = 60.0
_SERVE = (sys.executable, "-m", "orchard_core.cli.main", "serve", "--port", "0", "--json")


class Orchestrator:
    """`orchard serve` with these flags. `come_up` waits until it answers."""

    def __init__(self, log: Path, *flags: str, env: dict[str, str] | None = None) -> None:
        self._log = log
        with log.open("ab") as stderr:
            self.process = subprocess.Popen(
                [*_SERVE, *flags],
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                env={**os.environ, **(env or {})},
            )

    def come_up(self) -> Orchestrator:
        """Wait for its address."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"the service did not start: {self._log.read_text()[-9000:]}"
        self.url = str(json.loads(line)["url"])
        self.client = httpx.Client(base_url=self.url, timeout=GENEROUS_S)
        return self

    def kill(self) -> None:
        """kill -9."""
        self.process.kill()
        self.process.wait()
        if hasattr(self, "client"):
            self.client.close()


@contextmanager
def orchestrator(log: Path, *flags: str, env: dict[str, str] | None = None) -> Iterator[Orchestrator]:
    """One that answers, and is gone when left."""
    made = Orchestrator(log, *flags, env=env)
    try:
        yield made.come_up()
    finally:
        made.kill()


def make(client: httpx.Client, **fields: Any) -> str:
    """A sandbox that is ready."""
    asked = client.post("/sandboxes", json={"image": "any", **fields})
    assert asked.status_code == 200, asked.text
    sandbox = str(asked.json()["sandbox_id"])
    told = client.get(f"/sandboxes/{sandbox}/wait")
    assert told.status_code == 200, told.text
    return sandbox


def run(client: httpx.Client, sandbox: str, command: str, **fields: Any) -> dict[str, Any]:
    """A command to its end."""
    asked = client.post(f"/sandboxes/{sandbox}/exec", json={"command": command, "wait": True, **fields})
    assert asked.status_code == 200, asked.text
    told: dict[str, Any] = asked.json()
    return told


def until(look: Callable[[], object], what: str = "") -> None:
    """Until it is so."""
    end = monotonic() + GENEROUS_S
    while not look():
        assert monotonic() < end, f"never: {what}"
        sleep(0.02)
