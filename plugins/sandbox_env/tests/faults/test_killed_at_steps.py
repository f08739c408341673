"""kill -9 of the service at every step of create, exec, upload and delete, over a cluster of real agents: a
step is reached because its message is stopped on its way, and the service dies there."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from .orchestrators import GENEROUS_S, Orchestrator, make, run, until
from .paper import Paper, paper_cluster, provider_options

pytestmark = pytest.mark.slow

POD = "POST /api/v1/namespaces/default/pods"
BYSTANDER = "stranger"


@dataclass(frozen=True, kw_only=True)
class Step:
    """Where the service is when it dies."""

    text: str
    """Of the request that stops; ID stands for the sandbox."""
    agent: bool = False
    """It goes to the sandbox's agent, else to the API server."""
    answer: bool = False
    """The request was carried out, and its answer never read."""
    deliver: bool = False
    """What was on its way arrives after the sender's death."""


class Scene:
    """A cluster, the service of the moment, and a stranger's sandbox that nobody may touch."""

    def __init__(self, paper: Paper) -> None:
        self.paper = paper
        self.config = paper.folder / "serve.yaml"
        self.config.write_text(provider_options(paper, driver="service"))
        self.service = self.start()
        make(self.client, sandbox_id=BYSTANDER)
        self.strangers = 0

    @property
    def client(self) -> httpx.Client:
        """Of the service that runs."""
        return self.service.client

    def start(self) -> Orchestrator:
        """The next one."""
        flags = ("--provider", "kubernetes", "--config", str(self.config))
        return Orchestrator(self.paper.folder / "log", *flags).come_up()

    def die_at(self, step: Step, sandbox: str, method: str, path: str, body: Any = None) -> None:
        """Send a request, kill the service when it has come to the step, and start another."""
        text = step.text.replace("ID", sandbox)
        stop = self.paper.stop(text, at_agent=sandbox if step.agent else None, answer=step.answer)
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(self.client.request, method, path, json=body)
            assert stop.reached.wait(GENEROUS_S), f"the service never sent {text}"
            self.service.process.kill()
            self.service.process.wait()
            _over(asked)
        self.paper.go_on(stop, deliver=step.deliver)
        self.service.kill()
        self.service = self.start()

    def check_strangers(self) -> None:
        """The bystander does what it is told, once each time, as ever."""
        self.strangers += 1
        run(self.client, BYSTANDER, f"echo {self.strangers} >> log")
        told = (self.paper.work(BYSTANDER) / "log").read_text().split()
        assert told == [str(number) for number in range(1, self.strangers + 1)]

    def check_nothing_left(self, *standing: str) -> None:
        """What stands is what should, in the cluster, as processes, and in the service's own list."""
        wanted = {BYSTANDER, *standing}
        until(lambda: self.paper.pods() == wanted, f"pods {self.paper.pods()}, not {wanted}")
        until(lambda: self.paper.living() == wanted, "agents of pods that are gone end")
        listed = self.client.get("/v2/sandboxes").raise_for_status().json()["sandboxes"]
        assert {one["id"] for one in listed} == wanted


def _over(asked: Future[httpx.Response]) -> None:
    """A caller is answered by nobody, or was already."""
    with suppress(httpx.HTTPError):
        asked.result(GENEROUS_S)


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """One for all steps: each leaves it as it found it."""
    with paper_cluster(tmp_path_factory.mktemp("paper")) as paper:
        made = Scene(paper)
        try:
            yield made
        finally:
            made.service.kill()


CREATE = {
    "before it asks for the pod": Step(text=POD),
    "when it has asked for the pod": Step(text=POD, deliver=True),
    "when the pod is made": Step(text=POD, answer=True),
}


@pytest.mark.parametrize("step", CREATE.values(), ids=CREATE)
def test_a_create_is_found_whole_or_not_at_all(scene: Scene, step: Step) -> None:
    asked = {"image": "any", "sandbox_id": "new"}
    scene.die_at(step, "new", "POST", "/sandboxes", asked)
    if step.deliver or step.answer:
        until(lambda: "new" in scene.paper.pods(), "the pod that was asked for is made")
        assert scene.client.post("/sandboxes", json=asked).status_code == 409
    else:
        assert scene.client.get("/sandboxes/new").status_code == 404
        make(scene.client, sandbox_id="new")
    assert run(scene.client, "new", "echo hi")["stdout"] == "hi\n"
    scene.check_nothing_left("new")
    scene.check_strangers()
    assert scene.client.delete("/sandboxes/new").status_code == 200
    scene.check_nothing_left()


EXEC = {
    "before it sends the command": Step(text="POST /v1/exec", agent=True),
    "when it has sent the command": Step(text="POST /v1/exec", agent=True, deliver=True),
    "when the command runs": Step(text="POST /v1/exec", agent=True, answer=True),
}


@pytest.mark.parametrize("step", EXEC.values(), ids=EXEC)
def test_a_command_runs_once_however_often_it_is_sent(scene: Scene, step: Step) -> None:
    make(scene.client, sandbox_id="box")
    order = {"command": "echo ran >> log; echo done", "exec_id": "one", "wait": True}
    scene.die_at(step, "box", "POST", "/sandboxes/box/exec", order)
    log = scene.paper.work("box") / "log"
    if step.deliver or step.answer:
        until(log.exists, "a command that was sent runs, whoever sent it is dead")
        told = scene.client.get("/jobs/box.one/wait").raise_for_status().json()
        assert (told["status"], told["stdout"]) == ("succeeded", "done\n")
    else:
        assert scene.client.get("/jobs/box.one").status_code == 404
    for _ in range(2):
        told = scene.client.post("/sandboxes/box/exec", json=order).json()
        assert (told["job_id"], told["status"], told["stdout"]) == ("box.one", "succeeded", "done\n")
    assert log.read_text() == "ran\n"
    _leave(scene, "box")


CONTENT = b"a" * (3 << 20) + b"THE-END"
UPLOAD = {
    "before it sends the file": Step(text="/v1/files", agent=True),
    "in the middle of the file": Step(text="THE-END", agent=True),
    "when the file is on its way": Step(text="/v1/files", agent=True, deliver=True),
    "when the file is written": Step(text="THE-END", agent=True, answer=True),
}


@pytest.mark.parametrize("step", UPLOAD.values(), ids=UPLOAD)
def test_a_file_is_there_whole_or_not_at_all(scene: Scene, step: Step) -> None:
    make(scene.client, sandbox_id="box")
    at = scene.paper.work("box") / "file"
    body = {"path": str(at), "content": base64.b64encode(CONTENT).decode()}
    scene.die_at(step, "box", "POST", "/sandboxes/box/files", body)
    # Whether what was on its way was enough is the network's affair; half a file is nobody's.
    assert not at.exists() or at.read_bytes() == CONTENT
    if step.answer:
        until(at.exists, "what arrived whole is written")
    assert scene.client.post("/sandboxes/box/files", json=body).status_code == 200
    assert at.read_bytes() == CONTENT
    until(lambda: [*at.parent.iterdir()] == [at], "nothing else is left there")
    _leave(scene, "box")


DELETE = {
    "before the pod is deleted": Step(text="DELETE /api/v1/namespaces/default/pods/ID"),
    "when the deletion is on its way": Step(text="DELETE /api/v1/namespaces/default/pods/ID", deliver=True),
    "when the pod is deleted": Step(text="DELETE /api/v1/namespaces/default/pods/ID", answer=True),
    "before the agent is told": Step(text="POST /v1/shutdown", agent=True),
    "when the agent is told": Step(text="POST /v1/shutdown", agent=True, answer=True),
}


@pytest.mark.parametrize("step", DELETE.values(), ids=DELETE)
def test_a_delete_that_is_sent_again_leaves_nothing(scene: Scene, step: Step) -> None:
    make(scene.client, sandbox_id="box")
    scene.die_at(step, "box", "DELETE", "/sandboxes/box")
    assert scene.client.delete("/sandboxes/box").status_code in (200, 404, 410)
    until(lambda: scene.paper.living() == {BYSTANDER}, "its agent ends")
    assert scene.client.get("/sandboxes/box").status_code in (404, 410)
    scene.check_strangers()
    make(scene.client, sandbox_id="box")
    assert run(scene.client, "box", "echo new")["stdout"] == "new\n"
    _leave(scene, "box")


def _leave(scene: Scene, sandbox: str) -> None:
    scene.check_strangers()
    assert scene.client.delete(f"/sandboxes/{sandbox}").status_code == 200
    scene.check_nothing_left()
    for left in scene.paper.work(sandbox).iterdir():
        left.unlink()
