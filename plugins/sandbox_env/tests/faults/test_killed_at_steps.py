"""kill -9 of the service at every step of create, exec, upload and delete, over a cluster of real agents: a
step is reached because its message is stopped on its way, and the service dies there. One death serves all
steps of a kind: each is reached in a sandbox of its own."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
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


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A request that comes to a step."""

    step: Step
    """Where it is when the service dies."""
    sandbox: str
    """Its own."""
    method: str = "POST"
    """Of HTTP."""
    path: str
    """Of the service."""
    body: Any = None
    """JSON."""


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

    def die_at(self, *asked: Asked) -> None:
        """Send the requests, kill the service when each has come to its step, and start another."""
        stops = []
        with ThreadPoolExecutor(len(asked)) as pool:
            answers = []
            for one in asked:
                text = one.step.text.replace("ID", one.sandbox)
                at_agent = one.sandbox if one.step.agent else None
                stops.append(self.paper.stop(text, at_agent=at_agent, answer=one.step.answer))
                answers.append(pool.submit(self.client.request, one.method, one.path, json=one.body))
                assert stops[-1].reached.wait(GENEROUS_S), f"the service never sent {text}"
            self.service.process.kill()
            self.service.process.wait()
            for answer in answers:
                _over(answer)
        for one, stop in zip(asked, stops, strict=True):
            self.paper.go_on(stop, deliver=one.step.deliver)
        self.service.kill()
        self.service = self.start()

    def wait_for_pod(self, sandbox: str) -> None:
        """What was asked for is made, whoever asked is dead."""
        until(lambda: sandbox in self.paper.pods(), f"the pod of {sandbox} is made")

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
    "not-asked-for": Step(text=POD),
    "asked-for": Step(text=POD, deliver=True),
    "made": Step(text=POD, answer=True),
}
"""Sandboxes, by what is done of them when the service dies."""


def test_creates_are_found_whole_or_not_at_all(scene: Scene) -> None:
    orders = {name: {"image": "any", "sandbox_id": name} for name in CREATE}
    scene.die_at(
        *(Asked(step=CREATE[name], sandbox=name, path="/sandboxes", body=orders[name]) for name in CREATE)
    )
    for name, step in CREATE.items():
        if step.deliver or step.answer:
            scene.wait_for_pod(name)
            assert scene.client.post("/sandboxes", json=orders[name]).status_code == 409, name
        else:
            assert scene.client.get(f"/sandboxes/{name}").status_code == 404, name
            make(scene.client, sandbox_id=name)
        assert run(scene.client, name, "echo hi")["stdout"] == "hi\n", name
    _leave(scene, *CREATE)


EXEC = {
    "not-sent": Step(text="POST /v1/exec", agent=True),
    "sent": Step(text="POST /v1/exec", agent=True, deliver=True),
    "begun": Step(text="POST /v1/exec", agent=True, answer=True),
}


def test_commands_run_once_however_often_they_are_sent(scene: Scene) -> None:
    _make(scene, EXEC)
    order = {"command": "echo ran >> log; echo done", "exec_id": "one", "wait": True}
    scene.die_at(
        *(
            Asked(step=step, sandbox=box, path=f"/sandboxes/{box}/exec", body=order)
            for box, step in EXEC.items()
        )
    )
    for box, step in EXEC.items():
        log, job = scene.paper.work(box) / "log", f"{box}.one"
        if step.deliver or step.answer:
            until(log.exists, f"the command of {box} runs, whoever sent it is dead")
            told = scene.client.get(f"/jobs/{job}/wait").raise_for_status().json()
            assert (told["status"], told["stdout"]) == ("succeeded", "done\n"), box
        else:
            assert scene.client.get(f"/jobs/{job}").status_code == 404, box
        for _ in range(2):
            told = scene.client.post(f"/sandboxes/{box}/exec", json=order).json()
            assert (told["job_id"], told["status"], told["stdout"]) == (job, "succeeded", "done\n")
        assert log.read_text() == "ran\n", box
    _leave(scene, *EXEC)


CONTENT = b"a" * (1 << 20) + b"THE-END"
UPLOAD = {
    "not-sent": Step(text="/v1/files", agent=True),
    "half-sent": Step(text="THE-END", agent=True),
    "sent": Step(text="/v1/files", agent=True, deliver=True),
    "written": Step(text="THE-END", agent=True, answer=True),
}


def test_files_are_there_whole_or_not_at_all(scene: Scene) -> None:
    _make(scene, UPLOAD)
    files = {box: scene.paper.work(box) / "file" for box in UPLOAD}
    asked = {
        box: Asked(
            step=step,
            sandbox=box,
            path=f"/sandboxes/{box}/files",
            body={"path": str(files[box]), "content": base64.b64encode(CONTENT).decode()},
        )
        for box, step in UPLOAD.items()
    }
    scene.die_at(*asked.values())
    for box, at in files.items():
        # Whether what was on its way was enough is the network's affair; half a file is nobody's.
        assert not at.exists() or at.read_bytes() == CONTENT, box
        if UPLOAD[box].answer:
            until(at.exists, f"what arrived whole in {box} is written")
        assert scene.client.post(asked[box].path, json=asked[box].body).status_code == 200, box
        assert at.read_bytes() == CONTENT, box
        _wait_until_alone(at)
    _leave(scene, *UPLOAD)


GONE = "DELETE /api/v1/namespaces/default/pods/ID"
DELETE = {
    "not-deleted": Step(text=GONE),
    "asked-for": Step(text=GONE, deliver=True),
    "deleted": Step(text=GONE, answer=True),
    "agent-not-told": Step(text="POST /v1/shutdown", agent=True),
    "agent-told": Step(text="POST /v1/shutdown", agent=True, answer=True),
}


def test_deletes_that_are_sent_again_leave_nothing(scene: Scene) -> None:
    _make(scene, DELETE)
    scene.die_at(
        *(
            Asked(step=step, sandbox=box, method="DELETE", path=f"/sandboxes/{box}")
            for box, step in DELETE.items()
        )
    )
    for box in DELETE:
        assert scene.client.delete(f"/sandboxes/{box}").status_code in (200, 404, 410), box
    until(lambda: scene.paper.living() == {BYSTANDER}, "their agents end")
    for box in DELETE:
        assert scene.client.get(f"/sandboxes/{box}").status_code in (404, 410), box
    scene.check_strangers()
    _make(scene, DELETE)
    for box in DELETE:
        assert run(scene.client, box, "echo new")["stdout"] == "new\n", box
    _leave(scene, *DELETE)


def _wait_until_alone(file: Path) -> None:
    until(lambda: [*file.parent.iterdir()] == [file], f"nothing is left beside {file}")


def _make(scene: Scene, boxes: Mapping[str, Step]) -> None:
    for box in boxes:
        make(scene.client, sandbox_id=box)


def _leave(scene: Scene, *boxes: str) -> None:
    scene.check_nothing_left(*boxes)
    scene.check_strangers()
    for box in boxes:
        assert scene.client.delete(f"/sandboxes/{box}").status_code == 200, box
    scene.check_nothing_left()
    for box in boxes:
        for left in scene.paper.work(box).iterdir():
            left.unlink()
