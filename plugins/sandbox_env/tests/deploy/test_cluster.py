"""The chart on a real cluster: what its server takes, what its account may do, and the service installed."""

from __future__ import annotations

import asyncio
import json
import secrets
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest
import yaml
from orchard_env import SandboxClient
from orchard_env.kubernetes.config import KubernetesConfig
from orchard_env.kubernetes.grip import KubernetesGrip
from orchard_env.kubernetes.provider import open_kubernetes
from orchard_env.kubernetes.reaper import Reaper
from orchard_env.kubernetes.session import ClusterSession

from orchard_core import ImageRef, SandboxGone, SandboxSpec

from ..kubernetes.conftest import IMAGE, Kubectl
from .access import VERBS, account_kubeconfig, asking, ought, questions
from .helm import ROOT, Helm, Manifest, only
from .relay import relayed
from .test_manifests import printed
from .value_sets import ALL, EXTERNAL, MINIMAL

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.xdist_group("deploy")]

ENOUGH_S = 120.0
HERE = {"namespace": "", "createNamespace": False}


def until(good: Callable[[], bool], what: str) -> None:
    """Wait for a state."""
    end = time.monotonic() + ENOUGH_S
    while not good():
        assert time.monotonic() < end, f"{what}: not within {ENOUGH_S:g} s"
        time.sleep(0.2)


@pytest.mark.parametrize(
    "values", [{}, MINIMAL, ALL, EXTERNAL], ids=["defaults", "minimal", "all", "external"]
)
def test_the_server_takes_every_object(
    helm: Helm, kubectl: Kubectl, namespace: str, values: dict[str, Any]
) -> None:
    here = {**values, "sandboxes": {**values.get("sandboxes", {}), **HERE}}
    made = helm.call("install", here, name="dry", namespace=namespace, dry_run="server")
    taken = kubectl(
        "-n", namespace, "apply", "--dry-run=server", "-o", "name", "-f", "-", text=made["manifest"]
    )
    assert len(taken.split()) == len([one for one in yaml.safe_load_all(made["manifest"]) if one]) >= 3
    known = kubectl("api-versions").split()
    assert {one["apiVersion"] for one in yaml.safe_load_all(made["manifest"]) if one} <= set(known)
    assert not kubectl("-n", namespace, "get", "deployments", "-o", "name")


def test_the_server_takes_the_plain_manifests(kubectl: Kubectl, namespace: str) -> None:
    known = kubectl("api-versions").split()
    objects = printed("--namespace", namespace, "--sandboxes", f"{namespace}-boxes")
    for one in objects:
        if one["metadata"]["namespace"] != namespace:
            one["metadata"]["namespace"] = namespace  # the other one is not there, and a dry run makes none
    ours = [one for one in objects if one["apiVersion"] in known]
    assert {one["kind"] for one in objects} - {one["kind"] for one in ours} <= {"PodDisruptionBudget"}
    kubectl("-n", namespace, "apply", "--dry-run=server", "-f", "-", text=yaml.safe_dump_all(ours))


@pytest.fixture(scope="module")
def sandboxes(namespace: str, kubectl: Kubectl) -> Iterator[str]:
    """A namespace of sandboxes beside the service's."""
    name = f"{namespace}-boxes"
    yield name
    kubectl("delete", "namespace", name, "--wait=false", "--ignore-not-found")


@pytest.fixture(scope="module")
def objects(helm: Helm, namespace: str, sandboxes: str) -> list[Manifest]:
    """What the chart makes here."""
    return helm.objects({"sandboxes": {"namespace": sandboxes}}, namespace=namespace)


@pytest.fixture(scope="module")
def account(
    objects: list[Manifest], kubectl: Kubectl, namespace: str, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A kubeconfig of the chart's service account, with the objects that it needs and no service."""
    kinds = ["Namespace", "ServiceAccount", "Role", "RoleBinding", "Secret", "NetworkPolicy"]
    made = sorted((one for one in objects if one["kind"] in kinds), key=lambda one: kinds.index(one["kind"]))
    kubectl("apply", "-f", "-", text=yaml.safe_dump_all(made))
    boxes = only(objects, "Role")["metadata"]["namespace"]
    until(
        lambda: bool(kubectl("-n", boxes, "get", "serviceaccount", "default", "--ignore-not-found")),
        "the namespace's own account",
    )
    file = tmp_path_factory.mktemp("account") / "kubeconfig"
    return account_kubeconfig(kubectl, namespace, only(objects, "ServiceAccount")["metadata"]["name"], file)


def provider_config(objects: list[Manifest], account: Path) -> KubernetesConfig:
    """That of the service, with the account's rights from here."""
    told = yaml.safe_load(only(objects, "ConfigMap")["data"]["config.yaml"])["provider"]
    return KubernetesConfig(**told, kubeconfig=str(account), reap=False, create_timeout_s=ENOUGH_S)


async def reaped(session: ClusterSession) -> list[str]:
    """Whose driver gave no sign of life for longer than a lease, by a clock that is turned."""
    passed, removed = [0.0], list[str]()
    reaper = Reaper(session.api, session.pods, driver=session.driver, lasts_s=60, clock=lambda: passed[0])
    for _ in range(4):
        removed += (await reaper.sweep()).sandboxes
        passed[0] += 30
    return removed


async def test_the_account_suffices_for_all_that_the_service_does(
    objects: list[Manifest], account: Path
) -> None:
    config = provider_config(objects, account)
    spec = SandboxSpec(image=ImageRef(kind="oci", value=IMAGE), cpu=0.1, memory_mb=64)
    first, second = open_kubernetes(config), open_kubernetes(config)
    dead = open_kubernetes(config.model_copy(update={"driver": "dead"}))
    try:
        sandbox = await first.create(spec)
        assert (await sandbox.exec("echo hi")).stdout == b"hi\n"
        await sandbox.reset_processes()
        left = await dead.create(spec)
        await first.release()
        await dead.release()
        adopted = await second.adopt(sandbox.id)
        assert (await adopted.exec("echo on")).stdout == b"on\n"
        session = await second.session()
        assert await KubernetesGrip(session.api, "orchard-env-reaper").grasp("me", 30) == 1
        assert await KubernetesGrip(session.api, "orchard-env-reaper").grasp("me", 30) == 1
        await dead.close()
        assert await reaped(session) == [left.id]
        await adopted.close()
        with pytest.raises(SandboxGone):
            await second.adopt(sandbox.id)
    finally:
        for provider in (first, second, dead):
            await provider.close()


async def test_the_account_may_do_nothing_else(
    objects: list[Manifest], account: Path, namespace: str
) -> None:
    sandboxes = only(objects, "Role")["metadata"]["namespace"]
    seed = {"namespace": sandboxes, "group": "", "resource": "secrets", "name": "orchard-agent-seed"}
    every = questions((sandboxes, namespace, "kube-system"))
    async with asking(account) as allowed:
        answers = await asyncio.gather(*map(allowed, every))
        wrong = [q for q, answer in zip(every, answers, strict=True) if answer != ought(q, sandboxes)]
        assert wrong == []
        assert [verb for verb in VERBS if await allowed({**seed, "verb": verb})] == ["get"]


def test_what_the_account_may_not_do_is_refused(
    objects: list[Manifest], account: Path, kubectl: Kubectl, namespace: str
) -> None:
    sandboxes = only(objects, "Role")["metadata"]["namespace"]
    kubectl("-n", sandboxes, "create", "secret", "generic", "others", "--from-literal=a=b")
    given = f"--kubeconfig={account}"
    assert "seed" in kubectl(given, "-n", sandboxes, "get", "secret", "orchard-agent-seed", "-o", "json")
    for words in (
        ("-n", sandboxes, "get", "secret", "others"),
        ("-n", sandboxes, "get", "secrets"),
        ("-n", sandboxes, "create", "secret", "generic", "mine", "--from-literal=a=b"),
        ("-n", sandboxes, "delete", "networkpolicy", "orchard-sandboxes"),
        ("-n", sandboxes, "create", "configmap", "mine"),
        ("-n", namespace, "get", "secret", "orchard-env-first-key"),
        ("-n", namespace, "get", "pods"),
        ("-n", namespace, "run", "mine", f"--image={IMAGE}"),
        ("get", "nodes"),
        ("create", "namespace", "mine"),
    ):
        with pytest.raises(AssertionError, match=r"(?i)forbidden"):
            kubectl(given, *words)


def own_python(api: tuple[str, int]) -> dict[str, Any]:
    """Values by which the service runs from this machine's files, there being no registry to pull from."""
    at = {
        "/lib": "/usr/lib",
        "/lib64": "/usr/lib64",
        "/opt/python": sys.base_prefix,
        "/opt/packages": sysconfig.get_path("purelib"),
        "/opt/orchard": str(ROOT),
    }
    name, _, tag = IMAGE.partition(":")
    env = {
        "PYTHONPATH": "/opt/orchard:/opt/orchard/plugins/sandbox_env:/opt/packages",
        "LD_LIBRARY_PATH": "/opt/python/lib",
        "KUBERNETES_SERVICE_HOST": api[0],
        "KUBERNETES_SERVICE_PORT": str(api[1]),
    }
    python = f"/opt/python/bin/python{sys.version_info.major}.{sys.version_info.minor}"
    volumes = {f"own-{number}": pair for number, pair in enumerate(at.items())}
    return {
        "image": {"repository": name, "tag": tag},
        "probes": {"periodSeconds": 1},
        "preStopSeconds": 0,
        "command": [python, "-c", "from orchard_core.cli.main import main; main()"],
        "extraEnv": [{"name": name, "value": value} for name, value in env.items()],
        "extraVolumes": [{"name": n, "hostPath": {"path": path}} for n, (_, path) in volumes.items()],
        "extraVolumeMounts": [
            {"name": n, "mountPath": where, "readOnly": True} for n, (where, _) in volumes.items()
        ],
    }


@pytest.fixture
def values(kubectl: Kubectl) -> Iterator[dict[str, Any]]:
    """Values for this machine as the node; skips when another is."""
    node = json.loads(kubectl("get", "nodes", "-o", "json"))["items"][0]
    address = next(one["address"] for one in node["status"]["addresses"] if one["type"] == "InternalIP")
    server = urlsplit(kubectl("config", "view", "--minify", "-o", "jsonpath={.clusters[0].cluster.server}"))
    with relayed(address, (server.hostname or "", server.port or 443)) as relay:
        if relay is None:
            pytest.skip(
                "the node is another machine: load the orchestrator's image into it and install by hand"
            )
        yield own_python((relay.host, relay.port))


def test_the_service_is_installed_serves_is_changed_and_leaves_nothing(
    helm: Helm, kubectl: Kubectl, namespace: str, values: dict[str, Any]
) -> None:
    boxes = f"{namespace}-{secrets.token_hex(3)}"
    about = {"name": "served", "namespace": namespace}
    chosen = {**values, "sandboxes": {"namespace": boxes}, "metrics": {"enabled": True}}
    try:
        helm.call("install", chosen, **about, wait="watcher", timeout=int(ENOUGH_S))
        key = first_key(kubectl, namespace)
        with SandboxClient(base_url=address(kubectl, namespace), api_key=key) as client:
            with client.create_sandbox(IMAGE) as sandbox:
                assert sandbox.exec("echo hi").stdout == "hi\n"
                assert sandbox.sandbox_id in kubectl("-n", boxes, "get", "pods", "-o", "name")
            until(
                lambda: sandbox.sandbox_id not in kubectl("-n", boxes, "get", "pods", "-o", "name"),
                "the sandbox's end",
            )
        changed = {**chosen, "config": {"service": {"ttl_s": 99.0}}}
        helm.call("upgrade", changed, **about, wait="watcher", timeout=int(ENOUGH_S))
        assert first_key(kubectl, namespace) == key
        with urlopen(f"{address(kubectl, namespace)}/health", timeout=ENOUGH_S) as answer:
            assert json.load(answer)["status"] == "ok"
        metrics = address(kubectl, namespace).replace(":8000", ":9090/metrics")
        with urlopen(metrics, timeout=ENOUGH_S) as answer:
            assert b"orchard" in answer.read()
        assert key not in kubectl(
            "-n", namespace, "logs", "-l", "orchard.dev/role=orchestrator", "--all-containers"
        )
    finally:
        helm.call("uninstall", None, **about)
    kinds = "deployments,services,configmaps,secrets,serviceaccounts,networkpolicies,poddisruptionbudgets"
    left = kubectl("-n", namespace, "get", kinds, "-l", "app.kubernetes.io/instance=served", "-o", "name")
    assert left == ""
    until(
        lambda: not kubectl("get", "namespace", boxes, "--ignore-not-found"),
        "the end of the sandboxes' namespace",
    )


def first_key(kubectl: Kubectl, namespace: str) -> str:
    found = kubectl(
        "-n", namespace, "get", "secret", "served-orchard-env-first-key", "-o", "go-template={{.data|len}} "
        "{{index .data \"api-key\"|base64decode}}",
    )  # fmt: skip
    count, _, key = found.partition(" ")
    assert count == "1"
    return key


def address(kubectl: Kubectl, namespace: str) -> str:
    """Of the pod that serves: a single node may have nothing that gives a Service its address."""
    chosen = ("-l", "orchard.dev/role=orchestrator", "--field-selector=status.phase=Running")
    pods = json.loads(kubectl("-n", namespace, "get", "pods", *chosen, "-o", "json"))["items"]
    live = [one for one in pods if "deletionTimestamp" not in one["metadata"]]
    assert len(live) == 1
    return f"http://{live[0]['status']['podIP']}:8000"
