"""Times of podman through the docker SDK: run to the first answer. Runs in the peers' environment.

podman_docker.py ROUNDS SOCKET
"""

from __future__ import annotations

import json
import sys
import time

import docker  # type: ignore[import-untyped]


def measure(rounds: int, socket: str) -> list[float]:
    client = docker.DockerClient(base_url=f"unix://{socket}")
    taken = []
    for _ in range(rounds):
        started = time.perf_counter()
        container = client.containers.run("bench", ["sleep", "1000"], detach=True, network_mode="none")
        try:
            answer = container.exec_run(["true"])
            taken.append(time.perf_counter() - started)
            assert answer.exit_code == 0, answer.output
        finally:
            container.remove(force=True)
    return taken


if __name__ == "__main__":
    print("\nTAKEN " + json.dumps(measure(int(sys.argv[1]), sys.argv[2])))
