"""Times of podman's way to a copy of a container with 100 MB written: commit it, run what that made, to its
first answer. Runs in the peers' environment.

podman_commit.py ROUNDS SOCKET
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import docker  # type: ignore[import-untyped]

_WRITE = "/bin/busybox dd if=/dev/urandom of=/large bs=1000000 count=100"
_SLEEP = ["sleep", "1000"]


def measure(rounds: int, socket: str) -> list[float]:
    client = docker.DockerClient(base_url=f"unix://{socket}", timeout=120)
    parent = client.containers.run("bench", _SLEEP, detach=True, network_mode="none")
    try:
        written = parent.exec_run(["sh", "-c", _WRITE])
        assert written.exit_code == 0, written.output
        return [once(client, parent) for _ in range(rounds)]
    finally:
        parent.remove(force=True)


def once(client: Any, parent: Any) -> float:
    started = time.perf_counter()
    image = parent.commit(repository="forked")
    child = client.containers.run(image.id, _SLEEP, detach=True, network_mode="none")
    try:
        answer = child.exec_run(["sh", "-c", "test -s /large"])
        taken = time.perf_counter() - started
        assert answer.exit_code == 0, answer.output
    finally:
        child.remove(force=True)
        client.images.remove(image.id, force=True)
    return taken


if __name__ == "__main__":
    print("\nTAKEN " + json.dumps(measure(int(sys.argv[1]), sys.argv[2])))
