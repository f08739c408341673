"""A cluster that goes away under a service that runs: its API server, its watches, single sandboxes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from .orchestrators import GENEROUS_S, Orchestrator, make, orchestrator, run, until
from .paper import Paper, paper_cluster, provider_options

pytestmark = pytest.mark.slow

AWAY_S = [5.0, pytest.param(30.0, marks=pytest.mark.nightly)]
"""Longer than the services' leases are; and what clusters take to replace theirs."""
POD = "POST /api/v1/namespaces/default/pods"


def serving(paper: Paper, name: str = "service", **options: object) -> tuple[str, ...]:
    """Flags of a service over it."""
    config = paper.folder / f"{name}.yaml"
    config.write_text(provider_options(paper, **options))
    return ("--provider", "kubernetes", "--config", str(config))


@pytest.fixture(scope="module")
def paper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Paper]:
    """A cluster."""
    with paper_cluster(tmp_path_factory.mktemp("paper")) as made:
        yield made


@pytest.fixture(scope="module")
def service(paper: Paper) -> Iterator[Orchestrator]:
    """A service over it."""
    with orchestrator(paper.folder / "log", *serving(paper, driver="service")) as running:
        yield running


@pytest.mark.parametrize("away_s", AWAY_S)
def test_a_while_without_an_api_server_loses_nothing(
    paper: Paper, service: Orchestrator, away_s: float
) -> None:
    client = service.client
    old, doomed = make(client, sandbox_id="old"), make(client, sandbox_id="doomed")
    job = client.post(f"/sandboxes/{old}/exec", json={"command": "until [ -e go ]; do sleep 0.1; done"})
    paper.cut()
    began = time.monotonic()
    sent = 0
    with ThreadPoolExecutor(3) as pool:
        # Whether a name is free can be known only when the server answers, so the answer waits for it.
        named = pool.submit(make, client, sandbox_id="named")
        gone = pool.submit(client.delete, f"/sandboxes/{doomed}")
        asked = client.post("/sandboxes", json={"image": "any"})
        nameless = str(asked.raise_for_status().json()["sandbox_id"])
        while time.monotonic() - began < away_s:
            order = {"command": f"echo {sent} >> log", "id": f"e{sent}"}
            ran = client.post(f"/v2/sandboxes/{old}/exec", json=order, params={"wait": 30})
            assert ran.status_code == 200, ran.text
            sent += 1
        paper.mend()
        assert named.result() == "named"
        assert client.get(f"/sandboxes/{nameless}/wait").json()["status"] == "ready"
        assert gone.result().status_code == 200
    assert (paper.work(old) / "log").read_text().split() == [str(number) for number in range(sent)]
    (paper.work(old) / "go").touch()
    ended = client.get(f"/jobs/{job.json()['job_id']}/wait").json()
    assert (ended["status"], ended["exit_code"]) == ("succeeded", 0)
    until(lambda: paper.pods() == {old, "named", nameless}, "what was deleted meanwhile goes")
    until(lambda: paper.living() == {old, "named", nameless}, "and its agent")
    for sandbox in (old, "named", nameless):
        client.delete(f"/sandboxes/{sandbox}").raise_for_status()
    for file in paper.work(old).iterdir():
        file.unlink()


def test_watches_that_break_while_sandboxes_come_up_hide_none(paper: Paper, service: Orchestrator) -> None:
    client = service.client
    with ThreadPoolExecutor(8) as pool:
        coming = [pool.submit(make, client, sandbox_id=f"n{number}") for number in range(16)]
        while not all(one.done() for one in coming):
            paper.drop_watches()
        names = {one.result() for one in coming}
    listed = client.get("/v2/sandboxes").raise_for_status().json()["sandboxes"]
    assert {one["id"] for one in listed} == names == paper.pods()
    with ThreadPoolExecutor(8) as pool:
        assert {one["exit_code"] for one in pool.map(lambda name: run(client, name, "true"), names)} == {0}
        assert all(pool.map(lambda name: client.delete(f"/sandboxes/{name}").is_success, names))
    until(lambda: not paper.pods() and not paper.living(), "all are gone")


@pytest.mark.parametrize("answer", [False, True], ids=["before it is told", "when it has begun"])
def test_an_agent_that_is_killed_under_a_command_is_told_of_and_runs_nothing_twice(
    paper: Paper, service: Orchestrator, answer: bool
) -> None:
    client = service.client
    fallen, other = make(client, sandbox_id="fallen"), make(client, sandbox_id="other")
    stop = paper.stop("POST /v1/exec", at_agent=fallen, answer=answer)
    with ThreadPoolExecutor(1) as pool:
        body = {"command": "echo ran >> log; sleep 600", "exec_id": "one", "wait": True}
        asked = pool.submit(client.post, f"/sandboxes/{fallen}/exec", json=body)
        assert stop.reached.wait(GENEROUS_S)
        log = paper.work(fallen) / "log"
        if answer:
            until(log.exists, "the command runs")
        paper.kill_agent(fallen)
        paper.go_on(stop, deliver=True)
        told = asked.result(GENEROUS_S)
    assert told.status_code == 410, told.text
    assert told.json()["message"]
    assert (log.read_text() if log.exists() else "") == ("ran\n" if answer else "")
    assert client.get(f"/sandboxes/{fallen}").json()["status"] == "failed"
    assert run(client, other, "echo on")["stdout"] == "on\n"
    for sandbox in (fallen, other):
        client.delete(f"/sandboxes/{sandbox}").raise_for_status()
    until(lambda: not paper.pods() and not paper.living(), "all are gone")
    log.unlink(missing_ok=True)


def test_what_a_service_leaves_that_dies_at_every_step_of_a_create_is_reaped_and_nothing_else(
    tmp_path: Path,
) -> None:
    with paper_cluster(tmp_path) as paper:
        left = die_in_creates(paper)
        assert paper.pods() == left, "nobody reaps yet"
        with orchestrator(paper.folder / "log", *serving(paper, "reaper", driver="lives")) as living:
            mine = make(living.client, sandbox_id="mine")
            until(lambda: paper.pods() == {mine}, "what the dead left is reaped")
            until(lambda: paper.living() == {mine}, "and its agents")
            assert run(living.client, mine, "echo on")["stdout"] == "on\n"
        names = [name for _, name in paper.cluster.server.store.all("leases")]
        assert names == ["orchard-driver-lives"]


STEPS = (("", POD, True), ("agent", "GET /v1/health", False), ("agent", "GET /v1/health", True))
"""Whom the message goes to, what it says, and whether it arrives."""


def die_in_creates(paper: Paper) -> set[str]:
    """Sandboxes that stand, and whose maker died while it made them."""
    names = [f"left-{number}" for number in range(len(STEPS))]
    with orchestrator(paper.folder / "log", *serving(paper, "dying", reap=False)) as dying:
        stops = []
        for name, (to, text, answer) in zip(names, STEPS, strict=True):
            stop = None if to else paper.stop(text, answer=answer)
            dying.client.post("/sandboxes", json={"image": "any", "sandbox_id": name}).raise_for_status()
            stops.append(stop or paper.stop(text, at_agent=name, answer=answer))
            assert stops[-1].reached.wait(GENEROUS_S)
        dying.kill()
        for stop in stops:
            paper.go_on(stop, deliver=False)
    return {*names}
