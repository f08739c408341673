"""A service over pods, attacked over REST: by another tenant's ids, by ids that are paths or selectors of the
API server, by ids of the cluster's own pods, by what is too large."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import pytest
from orchard_env.kubernetes.config import KubernetesConfig
from orchard_env.kubernetes.provider import open_kubernetes
from orchard_env.service.seams import Tenant

from ..kubernetes.conftest import IMAGE, Kubectl
from ..kubernetes.conftest import config as config
from ..kubernetes.conftest import kubectl as kubectl
from ..kubernetes.conftest import namespace as namespace
from ..service.running import GENEROUS_S, KnownKeys, Running, parts_of, running
from .test_tenants import said

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

MARK = b"MARK-that-nobody-else-may-see"
MIB = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Scene:
    """A service of two tenants in one namespace, in which a pod of somebody else stands, too."""

    service: Running
    namespace: str
    objects: Callable[[str], list[dict[str, Any]]]
    """All of a kind, as the cluster has them."""

    def uid(self, pod: str) -> str:
        """Of a pod that stands and is not going."""
        (found,) = [one for one in self.objects("pods") if one["metadata"]["name"] == pod]
        assert "deletionTimestamp" not in found["metadata"]
        return str(found["metadata"]["uid"])


@pytest.fixture(scope="module")
def scene(config: KubernetesConfig, kubectl: Kubectl, namespace: str) -> Iterator[Scene]:
    def objects(kind: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(kubectl("-n", namespace, "get", kind, "-o", "json"))["items"]
        return found

    kubectl("-n", namespace, "run", "bystander", f"--image={IMAGE}", "--", "sleep", "600")
    keys = KnownKeys(ours=Tenant(name="ours"), theirs=Tenant(name="theirs"))
    parts = lambda: parts_of(open_kubernetes(config), tenancy=keys, body_mb=1)  # noqa: E731
    with running(parts, key="ours") as service:
        for key, name in (("ours", "ours"), ("theirs", "theirs")):
            spec = {"image": {"kind": "oci", "value": IMAGE}, "cpu": 0.1, "memory_mb": 64, "name": name}
            with service.client(key=key) as client:
                made = client.post("/v2/sandboxes", params={"wait": GENEROUS_S}, json={"spec": spec})
                assert made.raise_for_status().json()["id"] == name
        with service.client(key="theirs") as owner:
            at = "/v2/sandboxes/theirs"
            owner.put(f"{at}/files?path=/workspace/f", content=MARK).raise_for_status()
            order = {"command": "cat f", "exec_id": "job", "wait": True}
            assert MARK.decode() in owner.post("/sandboxes/theirs/exec", json=order).text
        yield Scene(service=service, namespace=namespace, objects=objects)
    kubectl("-n", namespace, "delete", "pod", "bystander", "--wait=false")


def forged(namespace: str) -> list[str]:
    """Ids, as they stand in an address."""
    ways = [
        f"../../../{namespace}/pods/theirs", f"../../namespaces/{namespace}/pods/theirs", "theirs?x=",
        "theirs#", "theirs/log", "theirs/../theirs", "./theirs", "THEIRS", "theirs.", "ours,theirs",
        "theirs\0", "theirs\n", "*", "", " ", ".", "..", "a" * 4000, "\u202etheirs",
        "orchard.dev/managed-by=orchard",
        "ours,orchard.dev/sandbox=theirs", "$(id)", "' or 1=1 --",
    ]  # fmt: skip
    return ["theirs", "bystander", *(quote(way, safe="") for way in ways), "../theirs", "ours/../theirs"]


def test_no_forged_id_leads_to_anothers_sandbox_or_to_a_pod_of_the_cluster(scene: Scene) -> None:
    pods = {name: scene.uid(name) for name in ("ours", "theirs", "bystander")}
    for one in forged(scene.namespace):
        for method, target, body in (
            ("GET", f"/v2/sandboxes/{one}/files?path=/workspace/f", b""),
            ("GET", f"/sandboxes/{one}/files?path=/workspace/f", b""),
            ("POST", f"/sandboxes/{one}/exec", b'{"command": "cat /workspace/f", "wait": true}'),
            ("POST", f"/v2/sandboxes/{one}/exec", b'{"command": "rm -r /workspace"}'),
            ("GET", f"/jobs/{one}.job", b""),
            ("DELETE", f"/sandboxes/{one}/files", b""),
            ("DELETE", f"/v2/sandboxes/{one}/agent/v1/files", b""),
        ):
            status, told = said(scene.service, method, target, key="ours", body=body)
            assert 400 <= status < 500, (target, told)
            assert MARK not in told
        # Without an id this is the list of the caller's own, which nobody can delete.
        status, told = said(scene.service, "DELETE", f"/v2/sandboxes/{one}", key="ours")
        assert 400 <= status < 500, (one, told)
    assert {name: scene.uid(name) for name in pods} == pods
    with scene.service.client(key="theirs") as owner:
        assert owner.get("/v2/sandboxes/theirs/files?path=/workspace/f").content == MARK
        assert [one["id"] for one in owner.get("/v2/sandboxes").json()["sandboxes"]] == ["theirs"]


def test_no_name_of_a_new_sandbox_reaches_beyond_its_namespace_or_takes_anothers(scene: Scene) -> None:
    pods = {one["metadata"]["name"]: one["metadata"]["uid"] for one in scene.objects("pods")}
    with scene.service.client() as client:
        for name in ("../x", "a/b", "A", "a" * 300, "a.b/../c", "a?dryRun=All", "-a", "a\n", "\u0430"):
            answer = client.post("/sandboxes", json={"image": IMAGE, "sandbox_id": name})
            assert 400 <= answer.status_code < 500, (name, answer.text)
        taken = {"image": {"kind": "oci", "value": IMAGE}, "cpu": 0.1, "memory_mb": 64}
        for name in ("theirs", "bystander"):
            wanted = {"spec": {**taken, "name": name}}
            answer = client.post("/v2/sandboxes", params={"wait": GENEROUS_S}, json=wanted)
            assert answer.status_code == 409 or answer.json()["status"] == "failed", answer.text
            assert "stands already" in answer.text or "taken" in answer.text
            client.delete(f"/v2/sandboxes/{name}")
    assert {one["metadata"]["name"]: one["metadata"]["uid"] for one in scene.objects("pods")} == pods


def test_no_path_leads_out_of_a_pod_and_no_label_into_the_clusters_own(scene: Scene) -> None:
    with scene.service.client() as client:
        for path in ("/.orchard/token/token", "/var/run/secrets/kubernetes.io/x", "/seed/seed"):
            for way in (path, f"/workspace/../..{path}", f"/workspace/{'../' * 40}{path}"):
                answer = client.get("/v2/sandboxes/ours/files", params={"path": way})
                assert 400 <= answer.status_code < 500, (way, answer.text)
        for label in ("orchard.dev/managed-by", "orchard.dev/driver", "orchard.dev/tenant"):
            asked = {"spec": {"image": {"kind": "oci", "value": IMAGE}, "labels": {label: "theirs"}}}
            assert client.post("/v2/sandboxes", json=asked).status_code == 422


def test_what_is_too_large_is_refused_and_costs_the_cluster_nothing(scene: Scene) -> None:
    pods = {one["metadata"]["name"] for one in scene.objects("pods")}
    with scene.service.client() as client:
        for path in ("/sandboxes", "/v2/sandboxes", "/sandboxes/ours/exec", "/v2/sandboxes/ours/exec"):
            answer = client.post(path, json={"image": "x" * 5 * MIB})
            assert 400 <= answer.status_code < 500, (path, answer.text[:300])
            assert len(answer.content) < MIB // 100
        for env in ({f"N{number}": "v" * 900 for number in range(900)}, {"N": "v" * 900_000}):
            asked = {"spec": {"image": {"kind": "oci", "value": IMAGE}, "env": env}}
            answer = client.post("/v2/sandboxes", params={"wait": GENEROUS_S}, json=asked)
            assert answer.status_code < 500, answer.text[-1000:]
            assert answer.is_client_error or answer.json()["status"] == "failed", answer.text[-1000:]
    assert {one["metadata"]["name"] for one in scene.objects("pods")} == pods
