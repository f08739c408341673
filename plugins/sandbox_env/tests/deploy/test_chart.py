"""The Helm chart, rendered by Helm: what it makes, what it refuses, and that its parts agree."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import Any

import pytest
import yaml
from orchard_env.kubernetes.config import KubernetesConfig
from orchard_env.kubernetes.network import policy_manifest
from orchard_env.service.observe.settings import ObserveSettings, observe_settings
from orchard_env.service.settings import ServiceSettings
from orchard_env.service.team_settings import TeamSettings, team_settings
from orchard_env.service.tenancy.secret import PATTERN

from orchard_core import __version__

from .helm import CHART, Helm, Manifest, Refused, only
from .value_sets import ALL, EXTERNAL, MINIMAL, SETS

pytestmark = pytest.mark.skipif(not CHART.is_dir(), reason="the chart is in the repository")


def config_of(objects: list[Manifest]) -> dict[str, Any]:
    """The service's own file."""
    found: dict[str, Any] = yaml.safe_load(only(objects, "ConfigMap")["data"]["config.yaml"])
    return found


def orchestrator(objects: list[Manifest]) -> Manifest:
    pods = [one for one in objects if one["kind"] == "Deployment" and "redis" not in one["metadata"]["name"]]
    found: Manifest = pods[0]["spec"]["template"]["spec"]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("values", SETS.values(), ids=SETS)
def test_lint_has_nothing_to_say(helm: Helm, values: dict[str, Any]) -> None:
    told = helm.call("lint", values)
    assert told["errors"] == []
    assert [one["error"] for one in told["messages"]] == ["icon is recommended"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"replica": 2}, "additional properties 'replica' not allowed"),
        ({"replicas": 0}, "'/replicas': minimum"),
        ({"image": {"tag": "a b"}}, "'/image/tag'"),
        ({"sandboxes": {"podSecurity": "loose"}}, "'/sandboxes/podSecurity': value must be one of"),
        ({"sandboxes": {"options": {"driver": "me"}}}, "sandboxes.options.driver: the chart sets it itself"),
        ({"redis": {"mode": "sentinel"}}, "'/redis/mode': value must be one of"),
        ({"redis": {"mode": "external"}}, "redis.url: with redis.mode external"),
        ({"redis": {"mode": "external", "url": "redis://:secret@host:1/0"}}, "'/redis/url'"),
        ({"config": {"service": {"ttl": 5}}}, "'/config/service': additional properties 'ttl' not allowed"),
        ({"replicas": 2}, "set redis.mode"),
        ({"autoscaling": {"enabled": True}}, "set redis.mode"),
        ({"metrics": {"serviceMonitor": {"enabled": True}}}, "set metrics.enabled"),
        ({"tls": {"clientCertificates": True}}, "set tls.existingSecret"),
        ({"auth": {"firstKey": {"create": False}}}, "nobody would have a key"),
        ({"networkPolicy": {"clientCidrs": ["10.0.0.1"]}}, "'/networkPolicy/clientCidrs/0'"),
        ({"podDisruptionBudget": {"maxUnavailable": 0}}, "'/podDisruptionBudget/maxUnavailable'"),
    ],
)
def test_a_value_that_cannot_be_is_refused_by_its_name(helm: Helm, values: dict[str, Any], why: str) -> None:
    with pytest.raises(Refused, match=re.escape(why)):
        helm.objects(values)


@pytest.mark.slow
@pytest.mark.parametrize("values", SETS.values(), ids=SETS)
def test_the_service_takes_the_configuration_that_it_is_given(helm: Helm, values: dict[str, Any]) -> None:
    told = config_of(helm.objects(values))
    assert set(told) == {"service", "provider", "team", "observe"}
    provider = KubernetesConfig(**told["provider"])
    assert provider.driver
    assert not provider.network_policies
    assert ServiceSettings(**told["service"]).namespace == provider.namespace
    assert isinstance(team_settings(told["team"]), TeamSettings)
    assert observe_settings(told["observe"]).listen == told["observe"].get("listen")


@pytest.mark.slow
@pytest.mark.parametrize(
    "values",
    [
        {},
        {"sandboxes": {"namespace": ""}},
        {"sandboxes": {"driverNamespaces": ["a"], "driverCidrs": ["::/0"]}},
    ],
    ids=["two namespaces", "one namespace", "more drivers"],
)
def test_sandboxes_get_the_very_policy_that_the_provider_would_make(
    helm: Helm, values: dict[str, Any]
) -> None:
    asked = values.get("sandboxes", {})
    apart = [] if asked.get("namespace") == "" else ["orchard-env"]
    config = KubernetesConfig(
        driver_namespaces=(*apart, *asked.get("driverNamespaces", ())),
        driver_cidrs=tuple(asked.get("driverCidrs", ())),
    )
    made = only(helm.objects(values), "NetworkPolicy", "orchard-sandboxes")
    assert made["spec"] == policy_manifest(config)["spec"]
    assert made["metadata"]["namespace"] == (asked.get("namespace", "orchard-sandboxes") or "orchard-env")


@pytest.mark.slow
def test_pods_are_locked_down(helm: Helm) -> None:
    for one in helm.objects(ALL):
        if one["kind"] != "Deployment":
            continue
        pod = one["spec"]["template"]["spec"]
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in (*pod.get("initContainers", ()), *pod["containers"]):
            assert container["securityContext"]["readOnlyRootFilesystem"] is True
            assert container["securityContext"]["allowPrivilegeEscalation"] is False
            assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
            assert container["resources"]["limits"]["memory"]


@pytest.mark.slow
def test_rights_are_in_the_sandboxes_namespace_alone_and_of_one_secret(helm: Helm) -> None:
    objects = helm.objects()
    assert not [one for one in objects if one["kind"] in {"ClusterRole", "ClusterRoleBinding"}]
    role = only(objects, "Role")
    assert role["metadata"]["namespace"] == "orchard-sandboxes"
    assert only(objects, "RoleBinding")["metadata"]["namespace"] == "orchard-sandboxes"
    rights = {tuple(rule["resources"]): rule for rule in role["rules"]}
    assert set(rights) == {("pods",), ("events",), ("secrets",), ("leases",)}
    assert rights["secrets",]["resourceNames"] == ["orchard-agent-seed"]
    assert rights["secrets",]["verbs"] == ["get"]
    assert not any("*" in rule["verbs"] for rule in role["rules"])


@pytest.mark.slow
def test_no_secret_stands_anywhere_but_in_secrets(helm: Helm) -> None:
    objects = helm.objects({"redis": {"mode": "bundled"}})
    secrets = [text for one in objects if one["kind"] == "Secret" for text in one["data"].values()]
    assert len(secrets) == len(set(secrets)) == 3
    rest = json.dumps([one for one in objects if one["kind"] != "Secret"])
    notes = helm.call("render", {}, name="a", namespace="b")["orchard-env/templates/NOTES.txt"]
    assert not [text for text in secrets if text in rest or text in notes]
    assert not re.search(PATTERN, rest + notes)


@pytest.mark.slow
def test_the_first_key_is_seen_by_the_init_container_alone(helm: Helm) -> None:
    pod = orchestrator(helm.objects())
    mounted = {
        container["name"]: {mount["name"] for mount in container["volumeMounts"]}
        for container in (*pod["initContainers"], *pod["containers"])
    }
    assert "first-key" in mounted["first-key"]
    assert "first-key" not in mounted["orchestrator"]
    given = orchestrator(helm.objects(MINIMAL))
    assert "initContainers" not in given
    assert "--keys=/etc/orchard/keys/keys.json" in given["containers"][0]["args"]


@pytest.mark.slow
def test_several_replicas_keep_their_keys_in_redis(helm: Helm) -> None:
    pod = orchestrator(helm.objects(EXTERNAL))
    for container in (*pod["initContainers"], *pod["containers"]):
        env = {one["name"]: one for one in container["env"]}
        assert env["ORCHARD_ENV_REDIS_URL"]["value"] == EXTERNAL["redis"]["url"]
        assert env["ORCHARD_ENV_REDIS_PASSWORD"]["valueFrom"]["secretKeyRef"]["name"] == "redis"
        assert not any("--keys" in word for word in container["args"])
    assert "tcpSocket" in pod["containers"][0]["readinessProbe"], "a kubelet has no client certificate"


@pytest.mark.slow
def test_sandboxes_alone_go_onto_spot_nodes(helm: Helm) -> None:
    objects = helm.objects(ALL)
    provider = config_of(objects)["provider"]
    assert provider["tolerations"][0]["key"] == "mine"
    assert "cloud.google.com/gke-spot" in [one["key"] for one in provider["tolerations"]]
    assert provider["node_selector"] == {"pool": "spot"}
    assert orchestrator(objects)["tolerations"] == [{"key": "system", "operator": "Exists"}]


@pytest.mark.slow
def test_a_pod_has_time_to_drain(helm: Helm) -> None:
    pod = orchestrator(helm.objects(ALL))
    assert pod["terminationGracePeriodSeconds"] > 60 + 5
    assert pod["containers"][0]["livenessProbe"]["httpGet"]["path"] == "/"
    assert pod["containers"][0]["readinessProbe"]["httpGet"] == {
        "path": "/health",
        "port": "http",
        "scheme": "HTTPS",
    }


@pytest.mark.slow
def test_prometheus_finds_it_both_ways_and_strangers_do_not(helm: Helm) -> None:
    objects = helm.objects({"metrics": {"enabled": True, "serviceMonitor": {"enabled": True}}})
    monitor, service = only(objects, "ServiceMonitor"), only(objects, "Service", "orchard-env-metrics")
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert monitor["spec"]["endpoints"][0]["port"] == service["spec"]["ports"][0]["name"] == "metrics"
    about = only(objects, "Deployment")["spec"]["template"]["metadata"]["annotations"]
    assert about["prometheus.io/port"] == "9090"
    assert config_of(objects)["observe"]["listen"] == "0.0.0.0:9090"
    rules = only(objects, "NetworkPolicy", "orchard-env")["spec"]["ingress"]
    asked = {rule["ports"][0]["port"]: rule["from"] for rule in rules}
    assert [peer["namespaceSelector"] for peer in asked[9090]] == [
        {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}
    ]
    assert len(only(objects, "Service", "orchard-env")["spec"]["ports"]) == 1


def test_every_value_is_in_the_schema_and_has_a_comment() -> None:
    text = (CHART / "values.yaml").read_text(encoding="utf-8")
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    lines, silent = text.splitlines(), []
    for before, line in pairwise(lines):
        found = re.fullmatch(r"( *)[a-zA-Z]+:(.*)", line)
        own = found and (found[2].strip() or line.startswith("  "))
        if found and own and not before.strip().startswith("#"):
            silent.append(line)
    known = {"runAsNonRoot", "runAsUser", "runAsGroup", "fsGroup", "seccompProfile", "requests", "limits"}
    known |= {
        "allowPrivilegeEscalation",
        "readOnlyRootFilesystem",
        "capabilities",
        "resources",
        "tolerations",
    }
    assert [line for line in silent if line.strip().partition(":")[0] not in known] == []
    assert set(yaml.safe_load(text)) == set(schema["properties"]) - {"global"}


def closed(schema: Any, values: Any, where: str = "") -> list[str]:
    """Where a group of named values takes any other name as well."""
    if not isinstance(values, dict) or not schema.get("properties"):
        return []
    open_here = [] if schema.get("additionalProperties") is False else [where]
    names = [below for below in values if below not in schema["properties"]]
    return (
        open_here
        + [f"{where}/{name}" for name in names]
        + [
            text
            for name, below in values.items()
            if name in schema["properties"]
            for text in closed(schema["properties"][name], below, f"{where}/{name}")
        ]
    )


def test_the_schema_is_strict_and_knows_all_settings_of_the_service() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    assert closed(schema, values) == []
    config = schema["properties"]["config"]["properties"]
    assert set(config["service"]["properties"]) == set(ServiceSettings.model_fields) - {"namespace"}
    ours = {"keys", "redis", "replica"}
    assert set(config["observe"]["properties"]) == set(ObserveSettings.model_fields) - {"listen"}
    assert set(config["team"]["properties"]) == set(TeamSettings.model_fields) - ours


def test_the_chart_has_the_version_of_what_it_installs() -> None:
    about = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    assert (about["appVersion"], about["version"]) == (__version__, __version__)
