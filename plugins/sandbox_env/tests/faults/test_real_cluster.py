"""On a real cluster: a service killed while much is under way, a pod whose agent is killed, an API server
that cannot be reached for a while."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import pytest

from ..kubernetes.conftest import IMAGE, Kubectl
from ..kubernetes.conftest import kubectl as kubectl
from ..kubernetes.conftest import namespace as namespace
from .lives import agents_of
from .orchestrators import GENEROUS_S, Orchestrator, run, until
from .way import Way

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

AWAY_S = 30.0
BOXES = 4


class Scene:
    """A namespace and the service of the moment."""

    def __init__(self, folder: Path, namespace: str, kubectl: Kubectl) -> None:
        self.namespace, self.kubectl, self._folder = namespace, kubectl, folder
        self.way = Way(kubectl)
        kubeconfig = self.way.kubeconfig(folder)
        provider = {"kubeconfig": kubeconfig, "namespace": namespace, "driver": "service"}
        (folder / "serve.yaml").write_text(json.dumps({"provider": provider, "service": {"drain_s": 5.0}}))
        self.service = self.start()

    @property
    def client(self) -> httpx.Client:
        """Of the service that runs."""
        return self.service.client

    def start(self) -> Orchestrator:
        """The next one."""
        flags = ("--provider", "kubernetes", "--config", str(self._folder / "serve.yaml"))
        return Orchestrator(self._folder / "log", *flags).come_up()

    def kill_and_start(self) -> None:
        """kill -9, and another."""
        self.service.process.kill()
        self.service.process.wait()
        self.service = self.start()

    def pods(self) -> set[str]:
        """Sandboxes that stand by the cluster's word, and are not going."""
        told = json.loads(self.kubectl("-n", self.namespace, "get", "pods", "-o", "json"))["items"]
        return {one["metadata"]["name"] for one in told if "deletionTimestamp" not in one["metadata"]}


@pytest.fixture
def scene(tmp_path: Path, namespace: str, kubectl: Kubectl) -> Iterator[Scene]:
    """One of a test's own."""
    made = Scene(tmp_path, namespace, kubectl)
    try:
        yield made
    finally:
        made.service.kill()
        made.way.close()


def make(client: httpx.Client, name: str) -> str:
    """A small sandbox that is ready."""
    asked = {"image": IMAGE, "sandbox_id": name, "cpu": "100m", "memory": "64Mi"}
    client.post("/sandboxes", json=asked).raise_for_status()
    client.get(f"/sandboxes/{name}/wait").raise_for_status()
    return name


@contextmanager
def under_way(*calls: Callable[[], object]) -> Iterator[list[Future[object]]]:
    """Calls that have been sent; a service that is killed answers none of them."""
    with ThreadPoolExecutor(len(calls)) as pool:
        sent = [pool.submit(call) for call in calls]
        yield sent
        for one in sent:
            with suppress(httpx.HTTPError):
                one.result(GENEROUS_S)


def test_a_service_that_is_killed_with_much_under_way_loses_nothing_and_repeats_nothing(scene: Scene) -> None:
    boxes = [make(scene.client, f"box-{number}") for number in range(BOXES)]
    make(scene.client, "doomed")
    order = {"command": "echo ran >> log; until [ -e go ]; do sleep 0.1; done; echo went", "exec_id": "one"}
    content = {"path": "/workspace/file", "content": "d2hv" * 40_000}

    def execute(box: str) -> Callable[[], object]:
        return lambda: old.post(f"/sandboxes/{box}/exec", json={**order, "wait": True})

    old = scene.client
    new = {"image": IMAGE, "sandbox_id": "new", "cpu": "100m", "memory": "64Mi"}
    with under_way(
        *map(execute, boxes),
        lambda: old.post("/sandboxes", json=new),
        lambda: old.post(f"/sandboxes/{boxes[0]}/files", json=content),
        lambda: old.delete("/sandboxes/doomed"),
    ):
        scene.kill_and_start()
    client = scene.client
    for box in boxes:  # whatever had come through, sending it again is the same command
        client.post(f"/sandboxes/{box}/exec", json=order).raise_for_status()
        # Beside the lane of jobs, in which the command still runs.
        client.post(f"/v2/sandboxes/{box}/exec", json={"command": "touch go"}).raise_for_status()
        told = client.get(f"/jobs/{box}.one/wait").raise_for_status().json()
        assert (told["status"], told["stdout"]) == ("succeeded", "went\n")
        assert run(client, box, "cat log")["stdout"] == "ran\n"
    client.post(f"/sandboxes/{boxes[0]}/files", json=content).raise_for_status()
    assert run(client, boxes[0], "wc -c < file")["stdout"].strip() == str(3 * 40_000)
    if client.get("/sandboxes/new").status_code == 404:
        make(client, "new")
    assert run(client, "new", "echo hi")["stdout"] == "hi\n"
    assert client.delete("/sandboxes/doomed").status_code in (200, 404, 410)
    for sandbox in (*boxes, "new"):
        client.delete(f"/sandboxes/{sandbox}").raise_for_status()
    until(lambda: not scene.pods(), "all are gone")


def test_an_agent_that_is_killed_is_told_of_in_time_and_its_neighbour_works(scene: Scene) -> None:
    client = scene.client
    fallen, other = make(client, "fallen"), make(client, "other")
    # From inside nobody can: the kernel keeps PID 1 from its own namespace's signals.
    run(client, fallen, "kill -9 1")
    assert run(client, fallen, "echo alive")["stdout"] == "alive\n"
    pids = agents_of(fallen)
    if not pids:
        pytest.skip("the nodes' processes are not this machine's: run it on the node")
    order = {"command": "echo ran; sleep 60", "wait": True}
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(client.post, f"/sandboxes/{fallen}/exec", json=order)
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        told = asked.result(GENEROUS_S)
    assert told.status_code == 410, told.text
    assert run(client, other, "echo on")["stdout"] == "on\n"
    for sandbox in (fallen, other):
        client.delete(f"/sandboxes/{sandbox}").raise_for_status()
    until(lambda: not scene.pods(), "all are gone")


def test_half_a_minute_without_the_api_server_loses_nothing(scene: Scene) -> None:
    client = scene.client
    make(client, "old")
    make(client, "doomed")
    scene.way.cut()
    with ThreadPoolExecutor(2) as pool:
        coming = pool.submit(make, client, "coming")
        going = pool.submit(client.delete, "/sandboxes/doomed")
        for number in range(int(AWAY_S)):
            told = run(client, "old", f"echo {number} >> log; sleep 1")
            assert told["exit_code"] == 0
        listed = client.get("/v2/sandboxes")
        assert (listed.status_code, listed.json()["error"]) == (503, "SandboxUnavailable"), (
            "not an empty list"
        )
        scene.way.mend()
        assert coming.result(GENEROUS_S) == "coming"
        assert going.result(GENEROUS_S).status_code == 200
    lines = run(client, "old", "cat log")["stdout"].split()
    assert lines == [str(number) for number in range(int(AWAY_S))]
    until(lambda: scene.pods() == {"old", "coming"}, "what was deleted meanwhile goes")
    for sandbox in ("old", "coming"):
        client.delete(f"/sandboxes/{sandbox}").raise_for_status()
    until(lambda: not scene.pods(), "all are gone")
