"""The service's wall clock really steps, an hour forward and an hour back, while sandboxes live: what lives
by time lives by the clock that never steps, and keys expire by the one on the wall."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from orchard_env.service.tenancy.books import FileBook
from orchard_env.service.tenancy.issuing import create_key

from .clocks import HOUR_S, SteppedClock, built
from .field import check_isolation
from .orchestrators import GENEROUS_S, Orchestrator, make, orchestrator, run, until
from .paper import Paper, paper_cluster, provider_options

pytestmark = pytest.mark.slow

HALF_HOUR_S = HOUR_S / 2


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What makes a clock step."""
    return built(tmp_path_factory.mktemp("clock"))


def begin(client: httpx.Client, sandbox: str) -> dict[str, Any]:
    """A command that notes that it ran, and waits for a word."""
    command = "echo ran >> log; until [ -e go ]; do sleep 0.1; done; echo went"
    order = {"command": command, "exec_id": "one"}
    client.post(f"/sandboxes/{sandbox}/exec", json=order).raise_for_status()
    return order


def check_ran_once(client: httpx.Client, sandbox: str, order: dict[str, Any]) -> None:
    """It goes on to its end; asked for again, it is not run again."""
    client.post(f"/v2/sandboxes/{sandbox}/exec", json={"command": "touch go"}).raise_for_status()
    told = client.get(f"/jobs/{sandbox}.one/wait").raise_for_status().json()
    assert (told["status"], told["stdout"]) == ("succeeded", "went\n")
    again = client.post(f"/sandboxes/{sandbox}/exec", json={**order, "wait": True}).raise_for_status().json()
    assert again["stdout"] == "went\n"
    assert run(client, sandbox, "cat log")["stdout"] == "ran\n"


def status(client: httpx.Client, sandbox: str) -> str:
    """How it stands."""
    told = client.get(f"/sandboxes/{sandbox}")
    return "gone" if told.status_code in (404, 410) else str(told.json()["status"])


def check_time_goes_on(client: httpx.Client, image: str, hours: int) -> None:
    """Twice one that may live for a second, by a wall clock so far ahead: whoever looks after all of them has
    looked at each since."""
    for _ in range(2):
        brief = make(client, image=image, ttl=1)
        told = client.get(f"/v2/sandboxes/{brief}").raise_for_status().json()
        assert abs(told["created"] - time.time() - hours * HOUR_S) < HALF_HOUR_S
        until(lambda brief=brief: status(client, brief) in ("gone", "failed"), "a second's life ends")  # type: ignore[misc]
        client.delete(f"/sandboxes/{brief}")


@dataclass(frozen=True, kw_only=True)
class Stepped:
    """A service over local sandboxes, and two keys of one tenant."""

    clock: SteppedClock
    """The service's."""
    client: httpx.Client
    """Whose key never expires."""
    expiring: httpx.Client
    """Whose key is good for half an hour."""


@pytest.fixture(scope="module")
def stepped(library: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stepped]:
    """One for both directions."""
    check_isolation()
    folder = tmp_path_factory.mktemp("stepped")
    book = FileBook(folder / "keys.json")
    texts = [asyncio.run(create_key(book, "ada", lasts_s=lasts_s)).text for lasts_s in (None, HALF_HOUR_S)]
    clock = SteppedClock(library, folder / "ahead")
    flags = ("--provider", "local", "--keys", str(folder / "keys.json"))
    with orchestrator(folder / "log", *flags, env=clock.env) as service:
        lasting, expiring = (
            httpx.Client(base_url=service.url, timeout=GENEROUS_S, headers={"X-API-Key": text})
            for text in texts
        )
        with lasting, expiring:
            yield Stepped(clock=clock, client=lasting, expiring=expiring)


@pytest.mark.parametrize("hours", [1, -1], ids=["forward", "back"])
def test_lives_go_on_through_a_step_and_keys_expire_by_the_wall(stepped: Stepped, hours: int) -> None:
    client = stepped.client
    box = make(client, image="host", ttl=HALF_HOUR_S, idle_ttl=HALF_HOUR_S)
    client.post(f"/sandboxes/{box}/heartbeat").raise_for_status()
    order = begin(client, box)
    assert stepped.expiring.get("/resources").status_code == 200
    stepped.clock.step_to(hours * HOUR_S)
    assert stepped.expiring.get("/resources").status_code == (403 if hours > 0 else 200)
    check_time_goes_on(client, "host", hours)
    assert status(client, box) == "ready"
    check_ran_once(client, box, order)
    assert run(client, box, "sleep 1000", timeout_seconds=0.2)["exit_code"] == 124
    stepped.clock.step_to(0)
    assert stepped.expiring.get("/resources").status_code == 200
    assert status(client, box) == "ready"
    client.delete(f"/sandboxes/{box}").raise_for_status()


class Driver:
    """One service of its own name over a cluster, with a clock of its own."""

    def __init__(self, paper: Paper, library: Path, name: str) -> None:
        self.clock = SteppedClock(library, paper.folder / f"{name}.ahead")
        self._paper, self._name = paper, name
        self.service = self.start()

    def start(self, **options: Any) -> Orchestrator:
        """One of its name; it comes up when it is asked to."""
        config = self._paper.folder / f"{self._name}.yaml"
        # Long enough that a busy machine keeps nobody from renewing it.
        told = {"lease_s": 10.0, **options}
        config.write_text(provider_options(self._paper, driver=self._name, **told))
        flags = ("--provider", "kubernetes", "--config", str(config))
        self.service = Orchestrator(self._paper.folder / f"{self._name}.log", *flags, env=self.clock.env)
        return self.service

    @property
    def client(self) -> httpx.Client:
        """Anybody's."""
        return self.service.client


@pytest.fixture
def drivers(library: Path, tmp_path: Path) -> Iterator[tuple[Paper, list[Driver]]]:
    """Three services over one cluster."""
    with paper_cluster(tmp_path) as paper:
        made = [Driver(paper, library, name) for name in ("early", "late", "dead")]
        try:
            for driver in made:
                driver.service.come_up()
            yield paper, made
        finally:
            for driver in made:
                driver.service.kill()


def test_services_whose_clocks_differ_by_hours_adopt_their_own_and_remove_only_a_dead_ones(
    drivers: tuple[Paper, list[Driver]],
) -> None:
    paper, (early, late, dead) = drivers
    steps = ((early, "first", -1), (late, "second", 1))
    make(dead.client, sandbox_id="orphan")
    dead.service.kill()
    orders = {}
    for driver, box, _ in steps:
        make(driver.client, sandbox_id=box, ttl=HALF_HOUR_S)
        orders[box] = begin(driver.client, box)
    for driver, _, hours in steps:
        driver.clock.step_to(hours * HOUR_S)
    until(lambda: paper.pods() == {"first", "second"}, "what the dead left is removed, and nothing else")
    for driver, *_ in steps:
        driver.service.kill()
    for driver, *_ in steps:
        driver.start(lease_s=600.0)  # neither is to wait for the other to start again
    for driver, box, hours in steps:
        driver.service.come_up()
        assert status(driver.client, box) == "ready"
        check_time_goes_on(driver.client, "any", hours)
        assert status(driver.client, box) == "ready"
        check_ran_once(driver.client, box, orders[box])
    assert paper.pods() == paper.living() == {"first", "second"}
