"""The faults of the field, 17 to 21: the service itself, over a cluster whose pods are real agents. Asked of
both contracts."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from orchard_env.service.tenancy.books import FileBook
from orchard_env.service.tenancy.issuing import create_key
from orchard_env.testing.cluster import Fault

from ..service.redis_server import PASSWORD, RedisServer, running_redis
from .field import CONTRACTS, Contract
from .orchestrators import GENEROUS_S, Orchestrator, orchestrator, until
from .paper import QUICK, Paper, paper_cluster, provider_options

pytestmark = pytest.mark.slow

LIST = "/namespaces/default/pods?"


class Scene:
    """A cluster, a Redis, the service of the moment, and the keys of two tenants."""

    def __init__(self, paper: Paper, redis: RedisServer) -> None:
        self.paper, self.redis = paper, redis
        folder = paper.folder
        self.keys = {name: asyncio.run(_key(folder / "keys.json", name)) for name in ("ours", "theirs")}
        (folder / "serve.yaml").write_text(provider_options(paper, driver="service"))
        (folder / "password").write_text(PASSWORD)
        self.service = self.start()

    def start(self) -> Orchestrator:
        """The next one."""
        folder = self.paper.folder
        files = {"config": "serve.yaml", "keys": "keys.json", "redis-password-file": "password"}
        flags = [word for name, file in files.items() for word in (f"--{name}", str(folder / file))]
        flags += ["--provider", "kubernetes", "--redis", self.redis.url]
        return Orchestrator(folder / "log", *flags).come_up()

    def kill_and_start(self) -> None:
        """kill -9, and another, which knows nothing."""
        self.service.kill()
        self.service = self.start()

    def client(self, tenant: str = "ours") -> httpx.Client:
        """A tenant's."""
        self.service.client.headers["X-API-Key"] = self.keys[tenant]
        return self.service.client

    def on(self, contract: str, tenant: str = "ours") -> Contract:
        """A contract, as a tenant speaks it to the service of the moment."""
        return CONTRACTS[contract](self.client(tenant))


async def _key(book: Path, tenant: str) -> str:
    return (await create_key(FileBook(book), tenant)).text


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """One for all: each case deletes what it made."""
    with running_redis() as redis, paper_cluster(tmp_path_factory.mktemp("paper")) as paper:
        made = Scene(paper, redis)
        try:
            yield made
        finally:
            made.service.kill()


@pytest.fixture(params=CONTRACTS)
def contract(request: pytest.FixtureRequest) -> str:
    """The contract that the case is asked of."""
    return str(request.param)


@pytest.fixture
def box(scene: Scene, contract: str) -> Iterator[str]:
    """A sandbox of ours, made by that contract."""
    made = scene.on(contract).make("oci:any")
    yield made
    assert scene.on(contract).delete(made).status_code in (200, 204)
    until(lambda: made not in scene.paper.pods(), "what is deleted goes")


Boxes = Mapping[str, str]
"""A sandbox of ours by the contract that made it."""


@pytest.fixture
def boxes(scene: Scene) -> Iterator[Boxes]:
    """One of each."""
    made = {contract: scene.on(contract).make("oci:any") for contract in CONTRACTS}
    yield made
    for contract, box in made.items():
        assert scene.on(contract).delete(box).status_code in (200, 204)
    until(lambda: not scene.paper.pods() & {*made.values()}, "what is deleted goes")


def test_fault_17_a_restart_without_any_memory_deletes_nothing(scene: Scene, boxes: Boxes) -> None:
    for contract, box in boxes.items():
        scene.on(contract).run(box, "echo kept > kept")
    scene.redis.ask("flushall")
    scene.kill_and_start()
    for contract, box in boxes.items():
        assert scene.on(contract).run(box, "cat kept").stdout == b"kept\n"
        assert box in scene.paper.living()


def test_fault_17_the_death_of_the_state_store_loses_no_sandbox_and_is_told(
    scene: Scene, contract: str, box: str
) -> None:
    scene.redis.kill()
    try:
        assert scene.on(contract).run(box, "echo on").stdout == b"on\n"
        until(lambda: scene.client().get("/health").json().get("degraded"), "/health says so")
    finally:
        scene.redis.start()
    until(lambda: "degraded" not in scene.client().get("/health").json(), "and that it is over")
    assert scene.on(contract).run(box, "echo still").stdout == b"still\n"
    assert box in scene.paper.living()


def test_fault_17_a_list_that_fails_changes_nothing(scene: Scene, contract: str, box: str) -> None:
    listed = scene.client().get("/v2/sandboxes").json()["sandboxes"]
    scene.paper.drop_watches()
    scene.paper.fails(Fault(method="GET", path=LIST, watch=False, status=500, count=5))
    answers = [scene.client().get("/v2/sandboxes") for _ in range(3)]
    for answer in answers:  # what stands, or that it cannot be known; never less than what stands
        assert answer.status_code == 503 or answer.json()["sandboxes"] == listed
    assert scene.on(contract).run(box, "echo on").stdout == b"on\n"
    assert box in scene.paper.living()
    until(lambda: all(not fault.count for fault in scene.paper.cluster.server.faults), "all have failed")
    assert scene.client().get("/v2/sandboxes").json()["sandboxes"] == listed


def test_fault_18_an_address_that_is_someone_elses_by_now_gets_no_command_through(
    scene: Scene, contract: str, box: str
) -> None:
    other = scene.on(contract, "theirs").make("oci:any")
    scene.on(contract).run(box, "true")
    scene.paper.misleads(box, other)
    answer = scene.on(contract).send(box, "touch stray")
    assert (answer.status_code, answer.json()["error"]) == (502, "AgentRefused")
    assert answer.json()["message"]
    for sandbox in (box, other):
        assert not (scene.paper.work(sandbox) / "stray").exists()
    assert scene.on(contract, "theirs").run(other, "echo mine").stdout == b"mine\n"
    assert scene.on(contract, "theirs").delete(other).status_code in (200, 204)


ENDS: Mapping[str, tuple[str, dict[str, object], str]] = {
    "out of memory": ("OOMKilled", {}, "SandboxOutOfMemory"),
    "evicted": (
        "Error",
        {"reason": "Evicted", "message": "The node was low on resource: memory."},
        "SandboxEvicted",
    ),
}


@pytest.mark.parametrize(("reason", "status", "error"), ENDS.values(), ids=ENDS)
def test_fault_19_a_pod_that_the_cluster_ended_is_told_of_by_type_and_with_its_reason(
    scene: Scene, contract: str, box: str, reason: str, status: dict[str, Any], error: str
) -> None:
    on = scene.on(contract)
    assert on.run(box, "true").exit_code == 0
    scene.paper.kill_agent(box, reason, status)
    answer = on.send(box, "true")
    assert (answer.status_code, answer.json()["error"]) == (410, error), answer.text
    assert (status.get("reason") or reason) in answer.json()["message"]
    assert _why_failed(scene.client(), contract, box) == error


def _why_failed(client: httpx.Client, contract: str, box: str) -> str:
    told = client.get(f"{CONTRACTS[contract].at}/{box}").json()
    assert told["status"] == "failed", told
    return str(told["error_type"] if contract == "v1" else told["problem"]["error"])


QUOTA = 'pods "a" is forbidden: exceeded quota: few, requested: pods=1, used: pods=9, limited: pods=9'


@pytest.fixture(scope="module")
def stuck(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Paper, Orchestrator]]:
    """A cluster in which no pod ever runs, and a service over it."""
    never = replace(QUICK, start_s=86400.0)
    with paper_cluster(tmp_path_factory.mktemp("stuck"), never) as paper:
        config = paper.folder / "serve.yaml"
        config.write_text(provider_options(paper))
        flags = ("--provider", "kubernetes", "--config", str(config))
        with orchestrator(paper.folder / "log", *flags) as serving:
            yield paper, serving


def _asked(client: httpx.Client, contract: str, name: str) -> None:
    if contract == "v1":
        asked = client.post("/sandboxes", json={"image": "any", "sandbox_id": name, "timeout": 3600})
    else:
        image = {"kind": "oci", "value": "any"}
        asked = client.post("/v2/sandboxes", json={"spec": {"image": image, "name": name}})
    assert asked.json()["status"] == "pending", asked.text


WAITING = {
    "an image that is not there": (
        "ImagePullBackOff",
        'Back-off pulling image "any": ErrImagePull: repository does not exist',
        422,
        "ImagePullFailed",
    ),
    "a wrong config": ("CreateContainerConfigError", 'secret "s" not found', 422, "SpecRefused"),
}


@pytest.mark.parametrize(("reason", "message", "status", "error"), WAITING.values(), ids=WAITING)
def test_fault_19_a_pod_that_cannot_start_is_told_of_at_once_with_the_clusters_words(
    stuck: tuple[Paper, Orchestrator], contract: str, reason: str, message: str, status: int, error: str
) -> None:
    paper, serving = stuck
    client, name = serving.client, f"{contract}-{reason.lower()}"
    _asked(client, contract, name)
    until(lambda: name in paper.pods(), "its pod is made")
    waits = {"waiting": {"reason": reason, "message": message}}
    paper.says(name, containerStatuses=[{"name": "sandbox", "restartCount": 0, "state": waits}])
    answer = client.get(f"/sandboxes/{name}/wait", params={"timeout": GENEROUS_S})
    assert (answer.status_code, answer.json()["error"]) == (status, error), answer.text
    assert message in answer.json()["message"]
    assert _why_failed(client, contract, name) == error
    ran = CONTRACTS[contract](client).send(name, "true")
    assert (ran.status_code, ran.json()["error"]) == (status, error)


def test_fault_19_a_quota_is_told_at_once_with_the_clusters_words(
    stuck: tuple[Paper, Orchestrator], contract: str
) -> None:
    paper, serving = stuck
    paper.fails(Fault(method="POST", path="/pods", status=403, message=QUOTA))
    name = f"{contract}-quota"
    _asked(serving.client, contract, name)
    answer = serving.client.get(f"/sandboxes/{name}/wait", params={"timeout": GENEROUS_S})
    assert (answer.status_code, answer.json()["error"]) == (429, "QuotaExceeded"), answer.text
    assert "exceeded quota: few" in answer.json()["message"]
    assert int(answer.headers["Retry-After"]) >= 1
    assert _why_failed(serving.client, contract, name) == "QuotaExceeded"


V1_CALLS = (
    ("GET", "/sandboxes/{box}", None),
    ("GET", "/sandboxes/{box}/wait", None),
    ("POST", "/sandboxes/{box}/heartbeat", None),
    ("POST", "/sandboxes/{box}/exec", {"command": "true"}),
    ("POST", "/sandboxes/{box}/apply_patch", {"patch": "x"}),
    ("POST", "/sandboxes/{box}/files", {"path": "x", "content": ""}),
    ("GET", "/sandboxes/{box}/files?path=x", None),
    ("GET", "/sandboxes/{box}/files/list", None),
    ("GET", "/jobs/{box}.run", None),
    ("GET", "/jobs/{box}.run/wait", None),
    ("DELETE", "/jobs/{box}.run", None),
    ("DELETE", "/sandboxes/{box}", None),
)
V2_CALLS = (
    ("GET", "/v2/sandboxes/{box}", None),
    ("POST", "/v2/sandboxes/{box}/exec", {"command": "true"}),
    ("GET", "/v2/sandboxes/{box}/execs", None),
    ("GET", "/v2/sandboxes/{box}/execs/run", None),
    ("GET", "/v2/sandboxes/{box}/files?path=/etc/passwd", None),
    ("PUT", "/v2/sandboxes/{box}/files?path=/workspace/x", None),
    ("GET", "/v2/sandboxes/{box}/tree?path=/workspace", None),
    ("POST", "/v2/sandboxes/{box}/snapshot", None),
    ("POST", "/v2/sandboxes/{box}/fork", {"count": 1}),
    ("GET", "/v2/sandboxes/{box}/endpoint", None),
    ("GET", "/v2/sandboxes/{box}/metrics", None),
    ("GET", "/v2/sandboxes/{box}/agent/v1/health", None),
    ("DELETE", "/v2/sandboxes/{box}", None),
)
UNKNOWN = "sb-0000000000000000"


def test_fault_20_anothers_sandbox_and_its_jobs_are_answered_word_for_word_as_what_never_was(
    scene: Scene, contract: str, box: str
) -> None:
    assert len(UNKNOWN) == len(box)
    scene.on(contract).run(box, "echo secret", id="run")
    for method, path, body in {"v1": V1_CALLS, "v2": V2_CALLS}[contract]:
        told = [_told(scene, method, path, body, each) for each in (UNKNOWN, box)]
        assert told[0] == told[1], path
        assert told[0][0] == 404, path
        assert told[0][3] > 0, "a name that is not known here is asked of the cluster"
    assert scene.on(contract).run(box, "echo mine").stdout == b"mine\n"


def _told(scene: Scene, method: str, path: str, body: object, box: str) -> tuple[int, Any, Any, int]:
    """Status, body and headers without what names this request, and how often the cluster was asked of pods
    for it: at least, as the service asks for its own ends as well."""
    counts = scene.paper.cluster.server.counts
    looked = []
    for _ in range(3):
        before = counts["GET pods"]
        answer = scene.client("theirs").request(method, path.format(box=box), json=body)
        looked.append(counts["GET pods"] - before)
    said = json.loads(answer.text.replace(box, "ID"))
    request = said.pop("request_id")
    headers = {name: value.replace(request, "") for name, value in answer.headers.items()}
    return answer.status_code, said, headers, min(looked)


def test_fault_20_a_chosen_id_that_exists_hands_nothing_over(scene: Scene, contract: str, box: str) -> None:
    client = scene.client("theirs")
    if contract == "v1":
        taken = client.post("/sandboxes", json={"image": "any", "sandbox_id": box})
    else:
        spec = {"image": {"kind": "oci", "value": "any"}, "name": box}
        taken = client.post("/v2/sandboxes", json={"spec": spec})
    assert (taken.status_code, taken.json()["error"]) == (409, "SandboxExists")
    assert scene.on(contract, "theirs").send(box, "true").status_code == 404
    assert scene.on(contract).run(box, "echo mine").stdout == b"mine\n"


def test_fault_20_whose_a_sandbox_is_outlives_the_service(scene: Scene, boxes: Boxes) -> None:
    scene.kill_and_start()
    for contract, box in boxes.items():
        assert scene.on(contract, "theirs").send(box, "true").status_code == 404
        assert scene.on(contract, "theirs").delete(box).status_code == 404
        assert scene.on(contract).run(box, "echo mine").stdout == b"mine\n"


WAITS = "echo ran >> log; echo begun; until [ -e go ]; do sleep 0.05; done; echo done; exit 3"


def test_fault_21_a_killed_service_loses_no_command_whether_it_runs_or_waits_and_the_next_tells_its_result(
    scene: Scene, boxes: Boxes
) -> None:
    for contract, box in boxes.items():
        assert scene.on(contract).start(box, WAITS, id="one").is_success
        until((scene.paper.work(box) / "log").exists, "it runs")
    queue = boxes["v1"]  # jobs of v1 take turns
    for number in range(1, 4):
        scene.on("v1").start(queue, f"echo {number} >> order", id=f"n{number}").raise_for_status()
    scene.kill_and_start()
    for contract, box in boxes.items():
        (scene.paper.work(box) / "go").touch()
        on = scene.on(contract)
        ran = on.ran(on.end(box, "one"))
        assert (ran.exit_code, ran.stdout, ran.limit_s) == (3, b"begun\ndone\n", None)
        assert on.run(box, WAITS, id="one") == ran
        assert (scene.paper.work(box) / "log").read_text() == "ran\n"
    assert scene.on("v1").ran(scene.on("v1").end(queue, "n3")).exit_code == 0
    assert (scene.paper.work(queue) / "order").read_text().split() == ["1", "2", "3"]
