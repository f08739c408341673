"""50,000 sandboxes on paper: the load that a cluster's news make, and the calls of a sandbox's life.

    python bench/env_scale.py [--pods 50000] [--sandboxes 5000] [--at-once 200] [--json]

An API server of our own stands in for the cluster's (`orchard_env.testing.cluster`, a program of its own that
is held to the same cases as a real one): pods as large as real ones, bound after 50 ms, running 800 ms later,
gone 300 ms after their deletion; each call is answered after 5 ms. Peer: the official client's own LIST into
models and its Watch, against the same stand-in with a tenth of the pods (it costs in proportion to them).
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from orchard_env.kubernetes.config import KubernetesConfig
from orchard_env.kubernetes.manifest import PodOwner, pod_manifest

from bench.env_scale_part import SPEC
from bench.table import Of, Table, at_least, at_most, options

HERE = Path(__file__).parent
CALLS = 3
"""API calls that the life of a sandbox may cost."""
UP_S = 0.85
"""From creation until a pod of the stand-in runs."""
EVENTS_PER_POD = 6
"""From creation to its end, as counted on a real cluster."""


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--pods", type=int, default=50_000, help="that stand while it is measured")
    parser.add_argument("--sandboxes", type=int, default=5_000, help="made by the provider beside them")
    parser.add_argument("--at-once", type=int, default=200)
    given = parser.parse_args()
    table = Table("env_scale", as_json=given.json)
    with tempfile.TemporaryDirectory(prefix="orchard-bench-") as folder:
        place = Path(folder)
        with cluster(place, given.pods) as (kubeconfig, port, _):
            ours = part("env_scale_part.py", "follow", kubeconfig, port, given.pods)
        fewer = max(1, given.pods // 10)
        with cluster(place, fewer) as (kubeconfig, port, _):
            theirs = part("peers/kubernetes_models.py", kubeconfig, port, fewer)
        news(table, ours, given.pods, theirs, fewer)
        with cluster(place, given.pods) as (kubeconfig, port, agents):
            lives = part(
                "env_scale_part.py", "live", kubeconfig, port, given.sandboxes, given.at_once, agents
            )
        life(table, lives, given.sandboxes, given.at_once, ours["bytes"])
    return table.end()


def news(table: Table, ours: dict[str, float], pods: int, theirs: dict[str, float], fewer: int) -> None:
    """What is heard of the pods. All of it per 1,000 pods, which is how the peer's fewer compare."""
    peer = f"kubernetes.aio models, {fewer:,} pods"

    def per_1000(name: str, what: str, asked: float | None = None) -> None:
        bound = None if asked is None else at_most(asked, Of.RATIO)
        mine, its = 1e6 * ours[what] / pods, 1e6 * theirs[what] / fewer
        table.row(name, mine, "ms/1000", peer=peer, beside=its, asked=bound)

    per_1000("LIST, wall", "list_s")
    per_1000("LIST, CPU", "list_cpu_s", 0.5)
    per_1000("re-list after 410, wall", "relist_s")
    per_1000("re-list after 410, CPU", "relist_cpu_s", 0.5)
    per_1000("events of a watch, CPU", "events_cpu_s", 0.5)
    mine, its = pods / ours["events_s"], fewer / theirs["events_s"]
    table.row("events of a watch", mine, "/s", peer=peer, beside=its, asked=at_least(2, Of.RATIO))
    mine, its = ours["bytes"] / 1e3, theirs["bytes"] / 1e3
    table.row("memory per sandbox", mine, "kB", peer=peer, beside=its, asked=at_most(0.5, Of.RATIO))
    held = pods * ours["bytes"] / 1e6
    table.note(
        f"{pods:,} pods: LIST {ours['list_s']:.1f} s, re-list {ours['relist_s']:.1f} s, {held:,.0f} MB"
    )
    rate = pods / ours["events_cpu_s"] / EVENTS_PER_POD
    table.note(
        f"one core hears of {rate:,.0f} sandboxes' whole lives a second ({EVENTS_PER_POD} events each)"
    )


def life(table: Table, lives: dict[str, float], count: int, at_once: int, heard: float) -> None:
    """What the provider does."""
    calls, up, rate = lives["calls"], 1e3 * lives["p50_s"], count / lives["all_s"]
    mine, wall = 1e3 * lives["all_cpu_s"] / count, 1e3 * lives["all_s"] / count
    held = lives["bytes"] / 1e3
    table.row("API calls per life", calls, "calls", peer="create, delete", beside=2.0, asked=at_most(CALLS))
    table.row("create to ready, p50", up, "ms", peer="the cluster's own latencies", beside=1e3 * UP_S)
    table.row("lives a second", rate, "/s", peer="by the latencies alone", beside=at_once / UP_S)
    table.row("CPU per life", mine, "ms", peer="wall time per life", beside=wall)
    table.row("memory per sandbox held", held, "kB", peer="one heard of only", beside=heard / 1e3)
    asked = ", ".join(f"{what[6:]} {number:,.0f}" for what, number in lives.items() if what[:6] == "calls ")
    table.note(f"{count:,} sandboxes, {at_once} created at once; calls: {asked}")


@contextmanager
def cluster(place: Path, pods: int) -> Iterator[tuple[Path, int, int]]:
    """The stand-in: a kubeconfig, its port, and its agents' port. It ends with the block."""
    template, kubeconfig, agents = place / "pod.json", place / "kubeconfig", free_port()
    template.write_text(json.dumps(pod_like_a_real_one()))
    command = [
        *(sys.executable, "-m", "orchard_env.testing.cluster"),
        *("--kubeconfig", str(kubeconfig), "--template", str(template), "--agents", str(agents)),
        *("--pods", str(pods), "--answer-s", "0.005", "--history", str(4 * pods + 10_000)),
    ]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        try:
            yield kubeconfig, json.loads(server.stdout.readline())["port"], agents
        finally:
            server.terminate()


def part(script: str, *arguments: object) -> dict[str, float]:
    """What a part prints, from a process of its own."""
    command = [sys.executable, str(HERE / script), *map(str, arguments)]
    path = os.pathsep.join([str(HERE.parent), *sys.path])
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": path})
    found: dict[str, float] = json.loads(done.stdout)
    return found


def pod_like_a_real_one() -> dict[str, object]:
    """As the provider writes it, with what a server adds: a real one is as large, 7.5 kB."""
    manifest = pod_manifest("standing", SPEC, KubernetesConfig(), PodOwner(driver="other"), memory_mb=None)
    about = manifest["metadata"]
    managed = {"manager": "orchard-env", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1"}
    return {**manifest, "metadata": {**about, "managedFields": [{**managed, "fieldsV1": fields(manifest)}]}}


def fields(value: object) -> object:
    """The names of an object's fields, as a server keeps them."""
    if isinstance(value, dict):
        return {f"f:{name}": fields(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return {f'k:{{"name":"{number}"}}': {".": {}} for number, _ in enumerate(value)}
    return {}


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


if __name__ == "__main__":
    sys.exit(main())
