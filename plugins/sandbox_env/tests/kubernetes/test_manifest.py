"""From a spec to a pod, or to a refusal before anything starts."""

from __future__ import annotations

import json
from typing import Any

import pytest
from orchard_env.kubernetes import labels
from orchard_env.kubernetes.config import KubernetesConfig
from orchard_env.kubernetes.demands import check_config, check_demands
from orchard_env.kubernetes.manifest import CONTAINER, PodOwner, pod_manifest
from orchard_env.kubernetes.pods import PodView
from orchard_env.kubernetes.provider import capabilities_of
from orchard_env.kubernetes.resources import Manifest

from orchard_core import (
    ConfigError,
    FileInput,
    ImageRef,
    Mount,
    Network,
    NetworkMode,
    SandboxSpec,
    SandboxUnsupported,
)


def spec(**fields: Any) -> SandboxSpec:
    return SandboxSpec(image=ImageRef(kind="oci", value="busybox:1.36"), **fields)


def pod(given: SandboxSpec | None = None, **options: Any) -> Manifest:
    config = KubernetesConfig(**options)
    given = given or spec()
    check_demands(given, config)
    return pod_manifest("box", given, config, PodOwner(driver="me"), memory_mb=None)


def main_container(manifest: Manifest) -> Manifest:
    (found,) = [one for one in manifest["spec"]["containers"] if one["name"] == CONTAINER]
    assert isinstance(found, dict)
    return found


def test_a_pod_can_do_no_more_than_it_must() -> None:
    made = pod()
    everywhere = [*made["spec"]["containers"], *made["spec"]["initContainers"]]
    for container in everywhere:
        security = container["securityContext"]
        assert security["allowPrivilegeEscalation"] is False
        assert security["privileged"] is False
        assert security["capabilities"]["drop"] == ["ALL"]
    assert made["spec"]["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert made["spec"]["automountServiceAccountToken"] is False
    assert made["spec"]["enableServiceLinks"] is False
    assert not {"hostNetwork", "hostPID", "hostIPC", "serviceAccountName"} & {*made["spec"]}
    added = main_container(made)["securityContext"]["capabilities"]["add"]
    assert not {"SYS_ADMIN", "SYS_PTRACE", "NET_ADMIN", "NET_RAW", "MKNOD", "ALL"} & {*added}


def test_no_capability_is_left_where_the_operator_wants_none() -> None:
    security = main_container(pod(capabilities=(), run_as_non_root=True))["securityContext"]
    assert security["capabilities"] == {"drop": ["ALL"]}
    assert pod(run_as_non_root=True)["spec"]["securityContext"]["runAsNonRoot"] is True


def test_the_seed_is_seen_by_the_init_container_alone() -> None:
    made = pod(injection="image-volume")
    seen = [mount["name"] for mount in main_container(made)["volumeMounts"]]
    assert "orchard-seed" not in seen
    assert "orchard-seed" in [mount["name"] for mount in made["spec"]["initContainers"][0]["volumeMounts"]]


def test_a_resolver_inside_carries_nothing_out() -> None:
    made = pod(spec(network=Network(mode=NetworkMode.OPEN)))
    assert made["spec"]["dnsPolicy"] == "None"
    assert made["spec"]["dnsConfig"]["nameservers"] == ["127.0.0.1"]
    proxied = {one["name"] for one in main_container(made)["env"]}
    assert {"HTTPS_PROXY", "https_proxy", "NO_PROXY"} <= proxied


def test_limits_and_requests_are_what_the_spec_and_the_operator_say() -> None:
    made = pod(spec(cpu=1.5, memory_mb=512, disk_mb=100), cpu_request_share=0.1, gpus=2)
    resources = main_container(made)["resources"]
    gpu = {"nvidia.com/gpu": "2"}
    assert resources["limits"] == {
        "cpu": "1500m", "memory": "512Mi", "ephemeral-storage": "100Mi", **gpu,
    }  # fmt: skip
    assert resources["requests"] == {
        "cpu": "150m", "memory": "512Mi", "ephemeral-storage": "100Mi", **gpu,
    }  # fmt: skip


def test_what_a_spec_leaves_open_is_the_operators_choice() -> None:
    resources = main_container(pod(default_cpu=0.5, default_memory_mb=64, default_disk_mb=10))["resources"]
    assert resources["limits"] == {"cpu": "500m", "memory": "64Mi", "ephemeral-storage": "10Mi"}
    assert main_container(pod())["resources"] == {"limits": {}, "requests": {}}


def test_values_of_the_environment_are_not_expanded() -> None:
    made = pod(spec(env={"A": "$(HOME) $$x $y", "B": "a\n'b'"}))
    assert {one["name"]: one["value"] for one in main_container(made)["env"]} == {
        "A": "$$(HOME) $$$$x $$y",
        "B": "a\n'b'",
    }


def test_a_numeric_user_is_the_containers_and_a_name_is_looked_up_inside() -> None:
    numeric = main_container(pod(spec(user="1000:2000")))
    assert numeric["securityContext"]["runAsUser"] == 1000
    assert numeric["securityContext"]["runAsGroup"] == 2000
    assert "--drop-to" not in numeric["command"]
    named = main_container(pod(spec(user="nobody")))
    assert named["securityContext"]["runAsUser"] == 0
    assert named["command"][-2:] == ["--drop-to", "nobody"]
    nobody = main_container(pod())
    assert "runAsUser" not in nobody["securityContext"]


def test_placement_is_as_the_operator_says() -> None:
    placed = pod(
        runtime_class="gvisor",
        priority_class="batch",
        node_selector={"pool": "sandbox"},
        tolerations=({"key": "spot", "operator": "Exists"},),
        topology_spread=({"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"},),
        pull_secrets=("registry",),
        volumes=({"name": "cache", "emptyDir": {}},),
        volume_mounts=({"name": "cache", "mountPath": "/cache"},),
    )["spec"]
    assert placed["runtimeClassName"] == "gvisor"
    assert placed["priorityClassName"] == "batch"
    assert placed["nodeSelector"] == {"pool": "sandbox"}
    assert placed["tolerations"] == [{"key": "spot", "operator": "Exists"}]
    assert placed["imagePullSecrets"] == [{"name": "registry"}]
    assert placed["topologySpreadConstraints"][0]["labelSelector"]["matchLabels"] == {
        labels.MANAGED_BY: labels.MANAGER
    }
    assert {"name": "cache", "emptyDir": {}} in placed["volumes"]
    assert {"name": "cache", "mountPath": "/cache"} in main_container({"spec": placed})["volumeMounts"]


def test_a_strategic_patch_merges_by_name_and_removes_by_null() -> None:
    patch = {
        "metadata": {"annotations": {"team": "blue"}},
        "spec": {
            "dnsConfig": None,
            "hostAliases": [{"ip": "10.0.0.1", "hostnames": ["x"]}],
            "containers": [{"name": CONTAINER, "env": [{"name": "ADDED", "value": "1"}]}],
            "volumes": [{"name": "orchard-seed", "$patch": "delete"}],
        },
    }
    made = pod(spec(env={"KEPT": "0"}), pod_patch=patch)
    assert made["metadata"]["annotations"]["team"] == "blue"
    assert "dnsConfig" not in made["spec"]
    assert [one["name"] for one in main_container(made)["env"]] == ["KEPT", "ADDED"]
    assert main_container(made)["image"] == "busybox:1.36"
    assert [one["name"] for one in made["spec"]["volumes"]] == ["orchard"]


def test_a_json_patch_is_put_on_in_order_and_refused_when_it_does_not_fit() -> None:
    good = ({"op": "add", "path": "/spec/priority", "value": 5}, {"op": "remove", "path": "/spec/dnsConfig"})
    made = pod(pod_patch=good)
    assert made["spec"]["priority"] == 5
    assert "dnsConfig" not in made["spec"]
    with pytest.raises(ConfigError, match="/spec/nowhere"):
        pod(pod_patch=({"op": "replace", "path": "/spec/nowhere", "value": 1},))


def test_everything_that_is_known_of_a_sandbox_is_on_its_pod() -> None:
    given = spec(
        env={"A": "b"}, ttl_s=60, labels={"orchard.dev/tenant": "blue", "run": "a b"},
        files=(FileInput(path="/x", content=b"y" * 100_000),),
    )  # fmt: skip
    made = pod(given)
    about = made["metadata"] | {
        "uid": "u",
        "resourceVersion": "1",
        "creationTimestamp": "2026-01-02T03:04:05Z",
    }
    seen = PodView.read(made | {"metadata": about})
    told = labels.standing(seen)
    assert labels.is_ours(seen)
    assert told is not None
    assert told.spec == given.model_copy(update={"files": ()})
    assert told.created == 1767323045
    assert seen.labels["orchard.dev/tenant"] == "blue"
    assert "run" not in seen.labels, "a value that no label can have is in the annotation alone"


def test_no_label_of_a_spec_steers_what_reads_the_labels_of_pods() -> None:
    """A Service that selects by it would send its traffic here, a webhook would put a cloud's token in."""
    steering = {"app": "redis", "azure.workload.identity/use": "true", "sidecar.istio.io/inject": "true"}
    given = spec(labels={**steering, "orchard.dev/tenant": "blue"})
    made = pod(given)["metadata"]
    assert not steering.keys() & made["labels"].keys()
    assert made["labels"]["label.orchard.dev/app"] == "redis", "people select by it"
    assert json.loads(made["annotations"][labels.SPEC])["labels"] == given.labels


@pytest.mark.parametrize(
    ("asked", "word"),
    [
        ({"mounts": (Mount(source="/", target="/host"),)}, "mounts"),
        ({"pids": 10}, "pids"),
        ({"network": Network(mode=NetworkMode.HOST)}, "host"),
        ({"env": {"A B": "c"}}, "A B"),
        ({"env": {"A": "\udce9"}}, "A"),
        ({"user": "no such; user"}, "user"),
        ({"cpu": 0.0}, "cpu"),
        ({"cpu": float("inf")}, "cpu"),
        ({"cpu": float("nan")}, "cpu"),
        ({"memory_mb": -1}, "memory_mb"),
        ({"disk_mb": 10**30}, "disk_mb"),
        ({"labels": {labels.DRIVER: "stranger"}}, "driver"),
        ({"labels": {"x": "y" * 300_000}}, "200 KiB"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_a_pod_cannot_give_is_refused(asked: dict[str, Any], word: str) -> None:
    with pytest.raises(SandboxUnsupported, match=word):
        check_demands(spec(**asked), KubernetesConfig())


def test_a_named_user_needs_an_agent_that_may_become_it() -> None:
    with pytest.raises(SandboxUnsupported, match="named user"):
        check_demands(spec(user="nobody"), KubernetesConfig(capabilities=()))


def test_an_old_server_has_no_image_volumes() -> None:
    with pytest.raises(ConfigError, match=r"1\.20"):
        check_config(KubernetesConfig(injection="image-volume"), (1, 20))
    check_config(KubernetesConfig(injection="image-volume"), (1, 33))


def test_an_image_volume_shows_the_agent() -> None:
    made = pod(injection="image-volume", injector="registry/injector:9")
    volume = next(one for one in made["spec"]["volumes"] if one["name"] == "orchard-agent")
    assert volume["image"]["reference"] == "registry/injector:9"
    assert main_container(made)["command"][0] == "/.orchard-agent/orchard-agent"
    assert "--to" not in made["spec"]["initContainers"][0]["args"], "it need not be copied"


def test_labels_of_the_operator_must_be_labels() -> None:
    for bad in ({"a b": "c"}, {"a": "b c"}, {labels.SANDBOX: "x"}):
        with pytest.raises(ConfigError):
            KubernetesConfig(labels=bad)


def test_an_image_may_stand_for_the_host() -> None:
    made = pod(SandboxSpec(), host_image="python:3.12-slim")
    assert main_container(made)["image"] == "python:3.12-slim"
    assert "host" in capabilities_of(KubernetesConfig(host_image="python:3.12-slim")).images
    assert "host" not in capabilities_of(KubernetesConfig()).images


@pytest.mark.parametrize(
    "patch",
    [
        {"metadata": {"name": "another"}},
        {"metadata": {"labels": None}},
        {"metadata": {"labels": {labels.DRIVER: "another"}}},
        {"metadata": {"annotations": {labels.SPEC: "{}"}}},
    ],
)
def test_a_patch_cannot_change_whose_a_pod_is(patch: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="whose the pod is"):
        pod(pod_patch=patch)


def test_a_life_without_end_is_as_long_as_a_pods_can_be() -> None:
    assert pod(spec(ttl_s=float("inf")))["spec"]["activeDeadlineSeconds"] == 2**31 - 1
    assert pod(spec(ttl_s=100.0))["spec"]["activeDeadlineSeconds"] >= 100
