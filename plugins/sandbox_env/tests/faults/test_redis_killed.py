"""kill -9 of Redis at every step of create, exec, upload and delete through one of two replicas: the request
is answered as ever, once, and both replicas say that Redis is away and find back to it."""

from __future__ import annotations

import base64
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from ..service.redis_server import running_redis
from .hurt_redis import Replicas, asked_in_time
from .orchestrators import make, run, until
from .paper import paper_cluster

pytestmark = pytest.mark.slow

BYSTANDER = "stranger"


@dataclass(frozen=True, kw_only=True)
class Step:
    """Where a request is when Redis dies."""

    at: str
    """Whom the message goes to that stops: redis, server (of the cluster) or agent."""
    text: str
    """Of the message."""
    answer: bool = False
    """It was carried out, and its answer stops."""


class Scene:
    """Two replicas, and a sandbox of nobody's business."""

    def __init__(self, replicas: Replicas) -> None:
        self.replicas, self.paper = replicas, replicas.paper
        self.one, self.two = replicas.start("one"), replicas.start("two")
        make(self.one, sandbox_id=BYSTANDER)
        self.told = 0

    def lose_redis(self, step: Step, method: str, path: str, body: Any = None) -> httpx.Response:
        """Ask the first replica, and kill Redis when the request has come to the step: the answer."""
        until(lambda: not any(self.replicas.degraded()), "both replicas have Redis")
        if step.at == "redis":
            stop = self.replicas.stop_at_redis(step.text.encode(), answer=step.answer)
        else:
            at_agent = "box" if step.at == "agent" else None
            stop = self.paper.stop(step.text, at_agent=at_agent, answer=step.answer)
        with asked_in_time(self.one, method, path, body) as asked:
            self.replicas.lose_redis_at(stop, asked)
            return asked.result()

    def check_away_and_back(self, *standing: str) -> None:
        """Both say so and serve; when Redis is back, empty, both find it and count right."""
        wanted = {BYSTANDER, *standing}
        until(lambda: all(self.replicas.degraded()), "both replicas say that Redis is away")
        for client in (self.one, self.two):
            self.told += 1
            run(client, BYSTANDER, f"echo {self.told} >> log")
        assert self.lines() == [str(number) for number in range(1, self.told + 1)]
        self.replicas.redis.start()
        until(lambda: not any(self.replicas.degraded()), "both replicas find Redis again")
        until(lambda: self.paper.pods() == self.paper.living() == wanted, "what should stands, nothing else")
        for client in (self.one, self.two):
            listed = client.get("/v2/sandboxes").raise_for_status().json()["sandboxes"]
            # Whoever had a sandbox in hands that another deleted says for a while how it ended.
            assert {one["id"] for one in listed if one["status"] == "ready"} == wanted

    def lines(self) -> list[str]:
        """What the bystander was told."""
        return (self.paper.work(BYSTANDER) / "log").read_text().split()

    def leave(self, sandbox: str) -> None:
        """Delete it by the other replica, as the tenant's next creation by this one counts."""
        assert self.two.delete(f"/sandboxes/{sandbox}").status_code == 200
        self.check_alone()
        make(self.one, sandbox_id="counted")
        assert self.replicas.counted() == [2, 2]

    def check_alone(self) -> None:
        """Nothing else stands."""
        until(lambda: self.paper.pods() == self.paper.living() == {BYSTANDER}, "all but the bystander goes")

    def clear(self) -> None:
        """As the next case is to find it, whatever became of this one."""
        self.replicas.go_on()
        for sandbox in self.paper.pods() - {BYSTANDER}:
            self.two.delete(f"/sandboxes/{sandbox}")
        self.check_alone()
        for folder in (self.paper.folder / "work").iterdir():
            if folder.name != BYSTANDER:
                shutil.rmtree(folder)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """One for all steps."""
    with paper_cluster(tmp_path_factory.mktemp("paper")) as paper, running_redis() as redis:
        replicas = Replicas(paper, redis)
        try:
            yield Scene(replicas)
        finally:
            replicas.close()


@pytest.fixture
def scene(stage: Scene) -> Iterator[Scene]:
    """It is left as it was found."""
    yield stage
    stage.clear()


POD = "POST /api/v1/namespaces/default/pods"
COUNTED, COUNTED_OUT = "$3\r\nbox\r\n$11\r\n1,1000,2048\r\n", "$3\r\nbox\r\n$6\r\n600000\r\n"
"""Arguments of commands of Redis: the sandbox, with what it counts as or how long its end is remembered."""
CREATE = {
    "before it is counted": Step(at="redis", text=COUNTED),
    "when it is counted": Step(at="redis", text=COUNTED, answer=True),
    "before the pod is asked for": Step(at="server", text=POD),
    "when the pod is made": Step(at="server", text=POD, answer=True),
}


@pytest.mark.parametrize("step", CREATE.values(), ids=CREATE)
def test_a_sandbox_is_made_once_and_counted_once(scene: Scene, step: Step) -> None:
    asked = {"image": "any", "sandbox_id": "box"}
    told = scene.lose_redis(step, "POST", "/sandboxes", asked)
    assert told.status_code == 200, told.text
    assert scene.two.get("/sandboxes/box/wait").json()["status"] == "ready"
    assert scene.two.post("/sandboxes", json=asked).status_code == 409
    scene.check_away_and_back("box")
    scene.leave("box")


EXEC = {
    "before the command is sent": Step(at="agent", text="POST /v1/exec"),
    "when the command runs": Step(at="agent", text="POST /v1/exec", answer=True),
}


@pytest.mark.parametrize("step", EXEC.values(), ids=EXEC)
def test_a_command_runs_once_whichever_replica_is_asked_again(scene: Scene, step: Step) -> None:
    make(scene.one, sandbox_id="box")
    order = {"command": "echo ran >> log; echo done", "exec_id": "one", "wait": True}
    told = [scene.lose_redis(step, "POST", "/sandboxes/box/exec", order)]
    told += [client.post("/sandboxes/box/exec", json=order) for client in (scene.one, scene.two)]
    assert [(one.json()["status"], one.json()["stdout"]) for one in told] == [("succeeded", "done\n")] * 3
    assert (scene.paper.work("box") / "log").read_text() == "ran\n"
    scene.check_away_and_back("box")
    scene.leave("box")


CONTENT = b"a" * (3 << 20) + b"THE-END"
UPLOAD = {
    "before the file is sent": Step(at="agent", text="/v1/files"),
    "in the middle of the file": Step(at="agent", text="THE-END"),
    "when the file is written": Step(at="agent", text="THE-END", answer=True),
}


@pytest.mark.parametrize("step", UPLOAD.values(), ids=UPLOAD)
def test_a_file_arrives_whole(scene: Scene, step: Step) -> None:
    make(scene.one, sandbox_id="box")
    at = scene.paper.work("box") / "file"
    body = {"path": str(at), "content": base64.b64encode(CONTENT).decode()}
    assert scene.lose_redis(step, "POST", "/sandboxes/box/files", body).status_code == 200
    assert at.read_bytes() == CONTENT
    scene.check_away_and_back("box")
    scene.leave("box")


GONE = "DELETE /api/v1/namespaces/default/pods/box"
DELETE = {
    "before the agent is told": Step(at="agent", text="POST /v1/shutdown"),
    "before the pod is deleted": Step(at="server", text=GONE),
    "when the pod is deleted": Step(at="server", text=GONE, answer=True),
    "before it is counted out": Step(at="redis", text=COUNTED_OUT),
    "when it is counted out": Step(at="redis", text=COUNTED_OUT, answer=True),
}


@pytest.mark.parametrize("step", DELETE.values(), ids=DELETE)
def test_a_sandbox_is_deleted_and_its_place_is_free(scene: Scene, step: Step) -> None:
    make(scene.one, sandbox_id="box")
    assert scene.lose_redis(step, "DELETE", "/sandboxes/box").status_code == 200
    told = scene.two.get("/sandboxes/box")
    assert told.status_code in (404, 410) or told.json()["status"] == "failed"
    scene.check_away_and_back()
    make(scene.two, sandbox_id="box")
    scene.leave("box")


def test_a_replica_that_is_killed_without_a_redis_hands_its_work_over(scene: Scene) -> None:
    make(scene.one, sandbox_id="box")
    dying = scene.replicas.start("dying")
    order = {"command": "echo ran >> log; until [ -e go ]; do sleep 0.1; done; echo went", "exec_id": "one"}
    dying.post("/sandboxes/box/exec", json=order).raise_for_status()
    scene.replicas.redis.kill()
    scene.replicas.running.pop().kill()
    scene.replicas.clients.pop().close()
    scene.two.post("/v2/sandboxes/box/exec", json={"command": "touch go"}).raise_for_status()
    for client in (scene.one, scene.two):
        told = client.get("/jobs/box.one/wait").raise_for_status().json()
        assert (told["status"], told["stdout"]) == ("succeeded", "went\n")
    assert scene.two.post("/sandboxes/box/exec", json={**order, "wait": True}).json()["stdout"] == "went\n"
    assert (scene.paper.work("box") / "log").read_text() == "ran\n"
    scene.check_away_and_back("box")
    scene.leave("box")
