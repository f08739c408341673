"""The Helm chart's objects without Helm: rendered once, and kept with this package."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

_FILE = Path(__file__).with_name("rendered.yaml")
_NAMESPACE, _SANDBOXES = "orchard-env", "orchard-sandboxes"
_NAMED_BY = frozenset({"namespace", "kubernetes.io/metadata.name"})
_SNAPSHOTS = "/var/lib/orchard-snapshots"
_CHECKSUM = "checksum/config"

HEAD = """\
# Orchard Env on Kubernetes 1.23 or newer, as the Helm chart makes it. Before, once:
#   kubectl create namespace {namespace}
#   kubectl create namespace {sandboxes}
#   orchard env keys create ops --scope admin --keys keys.json > ops.key
#   kubectl -n {namespace} create secret generic orchard-env-keys --from-file=keys.json
#   head -c 48 /dev/urandom | base64 -w 0 > seed
#   kubectl -n {sandboxes} create secret generic orchard-agent-seed --from-file=seed && rm seed
"""
"""What nobody can keep in a package: how the Secrets are made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What differs from cluster to cluster; all else is the chart's defaults."""

    namespace: str = _NAMESPACE
    """Where the service is."""
    sandboxes: str = _SANDBOXES
    """Where sandboxes are."""
    image: str | None = None
    """The orchestrator's; None: as the chart has it."""
    injector: str | None = None
    """The image with the agent; None: as the chart has it."""
    snapshots: str | None = None
    """The PersistentVolumeClaim where snapshots are kept; None: no volume."""


def manifests(choices: Choices) -> str:
    """The objects as YAML, the way to make the Secrets first."""
    objects = [_chosen(one, choices) for one in yaml.safe_load_all(_FILE.read_text(encoding="utf-8"))]
    for one in objects:
        _configure(one, objects, choices)
    head = HEAD.format(namespace=choices.namespace, sandboxes=choices.sandboxes)
    return head + yaml.dump_all(objects, Dumper=_Dumper, sort_keys=False, width=110)


class _Dumper(yaml.SafeDumper):
    """Writes a file within a file as one that can be read."""


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def _chosen(value: Any, choices: Choices, name: str = "") -> Any:
    """With the namespaces and the image put in, wherever they stand."""
    if isinstance(value, dict):
        return {key: _chosen(below, choices, key) for key, below in value.items()}
    if isinstance(value, list):
        return [_chosen(below, choices) for below in value]
    if name in _NAMED_BY:
        return {_NAMESPACE: choices.namespace, _SANDBOXES: choices.sandboxes}.get(value, value)
    if name == "image" and choices.image is not None:
        return choices.image
    return value


def _configure(one: dict[str, Any], objects: list[Any], choices: Choices) -> None:
    """The service's own file, and the sum of it by which a change makes new pods."""
    if one["kind"] != "ConfigMap":
        return
    config = _chosen(yaml.safe_load(one["data"]["config.yaml"]), choices)
    if choices.injector is not None:
        config["provider"]["injector"] = choices.injector
    if choices.snapshots is not None:
        config["provider"]["snapshots"] = {"url": f"file://{_SNAPSHOTS}", "keep": True}
    text = one["data"]["config.yaml"] = yaml.safe_dump(config)
    for other in objects:
        if other["kind"] == "Deployment":
            sums = other["spec"]["template"]["metadata"]["annotations"]
            sums[_CHECKSUM] = hashlib.sha256(text.encode()).hexdigest()
            if choices.snapshots is not None:
                _mount(other["spec"]["template"]["spec"], choices.snapshots)


def _mount(pod: dict[str, Any], claim: str) -> None:
    """The volume of snapshots, which the service alone sees."""
    pod["volumes"].append({"name": "snapshots", "persistentVolumeClaim": {"claimName": claim}})
    (service,) = pod["containers"]
    service["volumeMounts"].append({"name": "snapshots", "mountPath": _SNAPSHOTS})
