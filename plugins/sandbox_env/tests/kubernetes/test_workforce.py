"""Drivers of a shared run as pods of a real cluster: the run is whole whoever dies, and nothing is left."""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from orchard_env.kubernetes.workforce.config import WorkforceConfig
from orchard_env.kubernetes.workforce.manifest import CONTAINER, index_of, jobs_of

import orchard_core
from orchard_core import (
    ConfigError,
    Stop,
    WorkerNews,
    WorkersFailed,
    Workforce,
    WorkOrder,
    load_workforce,
    open_run,
)
from orchard_core.testing import WorkforceSuite

IMAGE = "busybox:1.36"
PATIENCE_S = 120.0
Kubectl = Callable[..., str]

_GATED = "until test -e {gate}/open || rmdir {gate}/pass 2>/dev/null; do sleep 0.05; done"
_CHECKOUT = Path(str(orchard_core.__file__)).parents[1]
_SHOWN = (*dict.fromkeys([sys.base_prefix, sys.prefix, str(_CHECKOUT)]), "/usr", "/bin", "/lib", "/lib64")
"""What the interpreter of these tests needs; the image has none of its own."""


def order(run: Path, *, count: int = 3) -> WorkOrder:
    return WorkOrder(run=run, count=count)


def config(**given: Any) -> WorkforceConfig:
    return WorkforceConfig(**{"image": "orchard:1", "host_path": "/shared", **given})


def pod_of(job: dict[str, Any]) -> dict[str, Any]:
    pod: dict[str, Any] = job["spec"]["template"]["spec"]
    return pod


def test_an_old_server_gets_a_job_for_each_worker_and_a_new_one_an_indexed_job() -> None:
    old = jobs_of(order(Path("/shared/run")), config(), crew="c0ffee", version=(1, 20))
    assert [job["metadata"]["name"] for job in old] == [f"orchard-c0ffee-{index}" for index in range(3)]
    assert [pod_of(job)["containers"][0]["args"][1] for job in old] == ["0", "1", "2"]
    assert {job["spec"]["backoffLimit"] for job in old} == {3}
    (middle,) = jobs_of(order(Path("/shared/run")), config(), crew="c0ffee", version=(1, 24))
    assert middle["spec"]["completionMode"] == "Indexed"
    assert (middle["spec"]["completions"], middle["spec"]["backoffLimit"]) == (3, 9)
    (new,) = jobs_of(order(Path("/shared/run")), config(), crew="c0ffee", version=(1, 29))
    assert new["spec"]["backoffLimitPerIndex"] == 3
    assert "backoffLimit" not in new["spec"]
    assert pod_of(new)["containers"][0]["args"] == ["--index", "$(JOB_COMPLETION_INDEX)", "--count", "3"]


def test_a_worker_sees_the_run_where_it_is_told_that_the_volume_is() -> None:
    (job,) = jobs_of(
        order(Path("/mnt/nfs/runs/$(x)"), count=1),
        config(host_path=None, claim="runs", here="/mnt/nfs", mount="/data", env_from=("keys",)),
        crew="c0ffee", version=(1, 31),
    )  # fmt: skip
    container = pod_of(job)["containers"][0]
    assert container["command"] == ["orchard", "worker", "/data/runs/$$(x)"]
    assert container["volumeMounts"] == [{"name": "run", "mountPath": "/data"}]
    assert container["envFrom"] == [{"secretRef": {"name": "keys"}}]
    assert pod_of(job)["volumes"] == [{"name": "run", "persistentVolumeClaim": {"claimName": "runs"}}]
    assert job["spec"]["template"]["metadata"]["labels"]["orchard.dev/role"] == "driver"
    with pytest.raises(ConfigError, match="does not lie in the workers' volume"):
        jobs_of(order(Path("/tmp/run")), config(), crew="c0ffee", version=(1, 31))


def test_the_volume_of_the_run_is_named_once() -> None:
    for wrong in ({"host_path": None}, {"claim": "runs"}, {"host_path": None, "claim": "runs"}):
        with pytest.raises(ConfigError, match="volume"):
            load_workforce("kubernetes", **{"image": "x", "host_path": "/shared", **wrong})


def test_pods_of_both_kinds_of_job_tell_which_worker_they_are() -> None:
    assert index_of("orchard-c0ffee-12-x7k2p") == 12
    assert index_of("orchard-c0ffee") == -1


@pytest.fixture(scope="session")
def shared(kubectl: Kubectl, namespace: str) -> Iterator[Path]:
    """A directory that the nodes see as this machine does."""
    folder = Path(tempfile.mkdtemp(prefix="orchard-shared-"))
    volume = {"name": "v", "hostPath": {"path": str(folder), "type": "Directory"}}
    probe = {
        "containers": [
            {
                "name": "probe", "image": IMAGE, "command": ["touch", f"{folder}/seen"],
                "volumeMounts": [{"name": "v", "mountPath": str(folder)}],
            }
        ],
        "volumes": [volume], "restartPolicy": "Never",
    }  # fmt: skip
    about = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe"}, "spec": probe}
    kubectl("-n", namespace, "apply", "-f", "-", text=json.dumps(about))
    deadline = time.monotonic() + PATIENCE_S
    phase = ""
    while phase != "Succeeded" and time.monotonic() < deadline:
        phase = kubectl("-n", namespace, "get", "pod", "probe", "-o", "jsonpath={.status.phase}")
        time.sleep(0.1)
    if not (folder / "seen").exists():
        pytest.skip("the cluster's nodes do not see this machine's files")
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def options(namespace: str, shared: Path) -> dict[str, Any]:
    """Workers by this very interpreter, shown to a pod that has none."""
    volumes = [{"name": f"shown-{n}", "hostPath": {"path": path}} for n, path in enumerate(_SHOWN)]
    mounts = [{"name": f"shown-{n}", "mountPath": path, "readOnly": True} for n, path in enumerate(_SHOWN)]
    return {
        "image": IMAGE,
        "namespace": namespace,
        "host_path": str(shared),
        "command": [sys.executable, "-m", "orchard_core.cli.main"],
        "env": {"PYTHONDONTWRITEBYTECODE": "1"},
        "pod_patch": {
            "spec": {"volumes": volumes, "containers": [{"name": CONTAINER, "volumeMounts": mounts}]}
        },
    }


class TestKubernetesWorkforce(WorkforceSuite):
    """The contract, in real pods."""

    sandbox = "process"

    @pytest.fixture
    def tmp_path(self, shared: Path) -> Path:
        return Path(tempfile.mkdtemp(dir=shared))

    @pytest.fixture
    def workforce(self, options: dict[str, Any]) -> Workforce:
        return load_workforce("kubernetes", **options)


@dataclass(frozen=True, slots=True, kw_only=True)
class Going:
    """A run by two workers, whose rollouts end when they are let."""

    out: Path
    process: subprocess.Popen[str]

    def let(self) -> None:
        """Let one rollout end."""
        (self.out.parent / "pass").mkdir()

    def open(self) -> None:
        """Let all of them."""
        (self.out.parent / "open").touch()

    def ended(self) -> str:
        told, _ = self.process.communicate(timeout=PATIENCE_S)
        return f"exit {self.process.returncode}\n{told}"

    def under_way(self) -> bool:
        journals = list(self.out.glob("workers/*/journal.jsonl"))
        return len(journals) == 2 and all(b'"started"' in path.read_bytes() for path in journals)

    def finished(self) -> list[str]:
        return [entry.id for entry in open_run(self.out).finished()] if self.out.exists() else []


@pytest.fixture
def start(options: dict[str, Any], shared: Path) -> Iterator[Callable[..., Going]]:
    folder = Path(tempfile.mkdtemp(dir=shared))
    command = json.dumps({"command": _GATED.format(gate=folder)})
    (folder / "script.jsonl").write_text(
        f'{{"text": "", "calls": [{{"name": "bash", "arguments": {command}}}]}}\n'
        '{"text": "done", "calls": [{"name": "submit", "arguments": {}}]}\n'
    )
    recipe = {
        "taskset": "workbench:4", "model": f"scripted:{folder}/script.jsonl", "sandbox": "process",
        "settings": {"allow_shared_paths": True}, "out": str(folder / "run"), "concurrency": 2,
        "workers": 2, "on": "kubernetes", "worker_options": options,
    }  # fmt: skip
    (folder / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    started: list[Going] = []

    def begin(*words: str) -> Going:
        orchard = [sys.executable, "-m", "orchard_core.cli.main"]
        process = subprocess.Popen(
            [*orchard, "run", str(folder / "recipe.yaml"), "--plain", *words],
            text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        started.append(Going(out=folder / "run", process=process))
        return started[-1]

    with _ending(started):
        yield begin


@contextmanager
def _ending(started: list[Going]) -> Iterator[None]:
    try:
        yield
    finally:
        for going in started:
            if going.process.poll() is None:
                going.process.send_signal(signal.SIGINT)
                going.process.communicate(timeout=PATIENCE_S)


def until(holds: Callable[[], bool], going: Going) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert going.process.poll() is None, going.ended()
        assert time.monotonic() < deadline
        time.sleep(0.05)


def left(kubectl: Kubectl, namespace: str) -> list[str]:
    """Jobs and pods of workers."""
    return kubectl("-n", namespace, "get", "jobs,pods", "-l", "orchard.dev/crew", "-o", "name").split()


def whole(out: Path) -> int:
    """Rollouts of a run of which each is there once, scored or not, and undamaged."""
    run = open_run(out)
    assert run.damaged() == []
    assert run.missing() == []
    assert not (out / "workers").exists()
    return len(list(run.rollouts()))


@pytest.mark.slow
def test_a_worker_whose_pod_is_deleted_loses_what_it_had_not_finished_and_no_more(
    start: Callable[..., Going], kubectl: Kubectl, namespace: str
) -> None:
    going = start()
    until(going.under_way, going)
    going.let()
    until(lambda: len(going.finished()) == 1, going)
    kept = open_run(going.out).finished()[0]
    pods = [name for name in left(kubectl, namespace) if name.startswith("pod/")]
    kubectl("-n", namespace, "delete", pods[0], "--wait=false")
    until(lambda: len({*left(kubectl, namespace)} - {*pods}) >= 3, going)  # two Jobs and a new pod
    going.open()
    told = going.ended()
    assert "its pod was deleted; started again" in told
    assert whole(going.out) == 4
    assert open_run(going.out).state().finished[kept.id] == kept  # it was not run again
    assert left(kubectl, namespace) == []


@pytest.mark.slow
def test_interrupted_and_killed_coordinators_leave_nothing_that_the_next_does_not_end(
    start: Callable[..., Going], kubectl: Kubectl, namespace: str
) -> None:
    killed = start()
    until(killed.under_way, killed)
    killed.process.kill()
    killed.process.communicate()
    before = left(kubectl, namespace)
    assert len(before) == 4
    killed.let()  # its workers go on without it: what they finish is taken over
    until_left = time.monotonic() + PATIENCE_S
    while not any(b'"finished"' in one.read_bytes() for one in killed.out.glob("workers/*/journal.jsonl")):
        assert time.monotonic() < until_left
        time.sleep(0.05)
    going = start("--resume", "--out", str(killed.out))
    until(lambda: len({*left(kubectl, namespace)} - {*before}) == 4, going)  # two Jobs, two pods
    assert not {*before} & {*left(kubectl, namespace)}
    assert len(going.finished()) == 1
    until(going.under_way, going)
    going.process.send_signal(signal.SIGINT)
    told = going.ended()
    assert told.startswith("exit 130"), told
    assert left(kubectl, namespace) == []
    assert len(open_run(going.out).finished()) == 1


@pytest.fixture
def shell(shared: Path, options: dict[str, Any]) -> Callable[..., Workforce]:
    """Workers that are a line of shell, which need nothing but the image."""
    plain = {name: value for name, value in options.items() if name not in {"command", "pod_patch"}}

    def workforce(line: str, **more: Any) -> Workforce:
        return load_workforce("kubernetes", **{**plain, "command": ("sh", "-c", line), **more})

    return workforce


@pytest.mark.slow
async def test_what_the_cluster_gives_up_is_told_with_the_workers_last_words(
    shell: Callable[..., Workforce], shared: Path, kubectl: Kubectl, namespace: str
) -> None:
    order = WorkOrder(run=Path(tempfile.mkdtemp(dir=shared)), count=1, restarts=0)
    with pytest.raises(WorkersFailed) as caught:
        await shell("echo my last words >&2; exit 3").work(order, Stop(), lambda _news: None)
    assert caught.value.message.startswith("worker 0 was given up by the cluster (BackoffLimitExceeded")
    assert "its pod ended with exit code 3\nmy last words" in caught.value.message
    assert f"--resume --out {order.run}" in caught.value.hint
    assert left(kubectl, namespace) == []


@pytest.mark.slow
async def test_a_worker_that_cannot_start_ends_the_run_with_the_clusters_own_reason(
    shell: Callable[..., Workforce], shared: Path, kubectl: Kubectl, namespace: str
) -> None:
    order = WorkOrder(run=Path(tempfile.mkdtemp(dir=shared)), count=2)
    workforce = shell("true", image="localhost/nobody/has-this:1", pull_policy="Never")
    with pytest.raises(WorkersFailed, match=r"worker [01] does not start: .*has-this"):
        await workforce.work(order, Stop(), lambda _news: None)
    assert left(kubectl, namespace) == []


@pytest.mark.slow
async def test_asked_twice_a_worker_that_does_not_stop_is_ended_at_once(
    shell: Callable[..., Workforce], shared: Path, kubectl: Kubectl, namespace: str
) -> None:
    order = WorkOrder(run=Path(tempfile.mkdtemp(dir=shared)), count=1)
    workforce = shell(f"trap 'touch {order.run}/asked' TERM; while :; do sleep 0.1; done", grace_s=60)
    stop, told = Stop(), list[WorkerNews]()
    working = asyncio.create_task(workforce.work(order, stop, told.append))
    async with asyncio.timeout(PATIENCE_S):
        while not told:
            await asyncio.sleep(0.05)
        stop.request()
        while not (order.run / "asked").exists():
            assert not working.done()
            await asyncio.sleep(0.05)
        stop.request()
        await working
    assert told[0].text.startswith("started on ")
    assert left(kubectl, namespace) == []
