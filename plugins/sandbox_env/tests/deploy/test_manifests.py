"""`orchard env manifests` prints what the chart makes, for whoever has no Helm."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import orchard_env
import pytest
import yaml
from orchard_env.cli.app import app
from orchard_env.kubernetes.config import KubernetesConfig
from typer.testing import CliRunner

from orchard_core import ConfigError

from .helm import Helm, only
from .value_sets import MANIFESTS

FILE = Path(orchard_env.__file__).with_name("rendered.yaml")
HELMS_OWN = {"app.kubernetes.io/managed-by", "helm.sh/chart"}


def printed(*words: str) -> list[dict[str, Any]]:
    said = CliRunner().invoke(app, ["manifests", *words])
    assert said.exit_code == 0, said.output
    return list(yaml.safe_load_all(said.stdout))


def without_helms_labels(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: without_helms_labels(below) for k, below in value.items() if k not in HELMS_OWN}
    return [without_helms_labels(below) for below in value] if isinstance(value, list) else value


@pytest.mark.slow
def test_what_is_kept_is_what_the_chart_makes(helm: Helm) -> None:
    made = without_helms_labels(helm.objects(MANIFESTS))
    if os.environ.get("ORCHARD_TEST_RENDER"):
        FILE.write_text(yaml.safe_dump_all(made, sort_keys=False, width=110), encoding="utf-8")
    kept = list(yaml.safe_load_all(FILE.read_text(encoding="utf-8")))
    assert kept == made, "after a change to the chart, run these tests once with ORCHARD_TEST_RENDER=1"


@pytest.mark.slow
def test_choices_come_out_as_they_would_from_the_chart(helm: Helm) -> None:
    values = {
        "image": {"repository": "registry.example.com/orchestrator", "tag": "2"},
        "sandboxes": {
            **MANIFESTS["sandboxes"],
            "namespace": "boxes",
            "injector": "registry.example.com/agent:2",
        },
        "auth": MANIFESTS["auth"],
        "snapshots": {"existingClaim": "saved"},
    }
    words = ["--namespace", "service", "--sandboxes", "boxes"]
    words += ["--image", "registry.example.com/orchestrator:2", "--injector", "registry.example.com/agent:2"]
    words += ["--snapshots", "saved"]
    ours, charts = printed(*words), without_helms_labels(helm.objects(values, namespace="service"))
    for objects in (ours, charts):
        config = only(objects, "ConfigMap")["data"]
        config["config.yaml"] = yaml.safe_load(config["config.yaml"])
        # The name of who owns the sandboxes may be any, as long as replicas share it.
        assert config["config.yaml"]["provider"].pop("driver")
        assert only(objects, "Deployment")["spec"]["template"]["metadata"]["annotations"].pop(
            "checksum/config"
        )
    assert ours == charts


def test_they_hold_no_secret_and_say_how_to_make_those_they_need() -> None:
    text = CliRunner().invoke(app, ["manifests", "--namespace", "service"]).stdout
    assert "Secret" not in [one["kind"] for one in yaml.safe_load_all(text)]
    head = text.partition("apiVersion")[0]
    assert "kubectl -n service create secret generic orchard-env-keys" in head
    assert "kubectl -n orchard-sandboxes create secret generic orchard-agent-seed" in head
    assert "secretName: orchard-env-keys" in text
    assert "seed_secret: orchard-agent-seed" in text


def test_snapshots_lie_on_the_volume_that_the_service_mounts() -> None:
    objects = printed("--snapshots", "saved")
    pod = only(objects, "Deployment")["spec"]["template"]["spec"]
    (volume,) = [one for one in pod["volumes"] if one["name"] == "snapshots"]
    assert volume["persistentVolumeClaim"] == {"claimName": "saved"}
    (mount,) = [one for one in pod["containers"][0]["volumeMounts"] if one["name"] == "snapshots"]
    told = yaml.safe_load(only(objects, "ConfigMap")["data"]["config.yaml"])["provider"]
    config = KubernetesConfig.model_validate(told).snapshots
    assert config is not None
    assert (config.url, config.keep) == (f"file://{mount['mountPath']}", True)


def test_another_injector_makes_new_pods() -> None:
    def checksum(*words: str) -> str:
        deployment = only(printed(*words), "Deployment")
        return str(deployment["spec"]["template"]["metadata"]["annotations"]["checksum/config"])

    assert checksum() == checksum("--image", "other:1")
    assert checksum() != checksum("--injector", "other:1")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--namespace", "No_Such"), "cannot name"),
        (("--namespace", "one", "--sandboxes", "one"), "own"),
        (("--snapshots", "/saved"), "PersistentVolumeClaim"),
    ],
)
def test_what_cannot_be_is_refused_with_the_way_out(words: tuple[str, ...], why: str) -> None:
    said = CliRunner().invoke(app, ["manifests", *words])
    assert isinstance(said.exception, ConfigError)
    assert why in f"{said.exception.message} {said.exception.hint}"
