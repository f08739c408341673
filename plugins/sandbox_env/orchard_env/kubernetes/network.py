"""Who may speak with a sandbox: nobody but drivers, and it with nobody."""

from __future__ import annotations

from typing import Final

from orchard_env.kubernetes import labels
from orchard_env.kubernetes.api import ClusterApi
from orchard_env.kubernetes.config import KubernetesConfig
from orchard_env.kubernetes.faults import ObjectChanged, ObjectExists, ObjectMissing
from orchard_env.kubernetes.resources import NETWORK_POLICIES, Manifest

POLICY: Final = "orchard-sandboxes"
_NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"
_TRIES: Final = 5


def policy_manifest(config: KubernetesConfig) -> Manifest:
    """Sandboxes send nothing anywhere, name queries included, and take connections to the agent's port alone,
    from pods labelled as drivers or orchestrators, and from the addresses the operator names.

    What a sandbox may reach under `open` or `allow-list` goes through the driver's proxy, so that the policy
    is the same for every sandbox.
    """
    drivers = {"matchExpressions": [{"key": labels.ROLE, "operator": "In", "values": list(labels.ROLES)}]}
    sources: list[Manifest] = [{"podSelector": drivers}]
    for namespace in config.driver_namespaces:
        chosen = {"matchLabels": {_NAMESPACE_NAME: namespace}}
        sources.append({"namespaceSelector": chosen, "podSelector": drivers})
    sources += [{"ipBlock": {"cidr": cidr}} for cidr in config.driver_cidrs]
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": POLICY, "labels": {labels.MANAGED_BY: labels.MANAGER}},
        "spec": {
            "podSelector": {"matchLabels": {labels.MANAGED_BY: labels.MANAGER}},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [{"from": sources, "ports": [{"protocol": "TCP", "port": config.agent_port}]}],
            "egress": [],
        },
    }


async def ensure_policy(api: ClusterApi, config: KubernetesConfig) -> None:
    """Make the namespace's policy, or bring it up to date; fine when it is. Raises SandboxUnavailable."""
    wanted = policy_manifest(config)
    for _ in range(_TRIES):
        found = await api.get(NETWORK_POLICIES, POLICY)
        try:
            if found is None:
                await api.create(NETWORK_POLICIES, wanted)
            elif _differs(found["spec"], wanted["spec"]):
                version = found["metadata"]["resourceVersion"]
                changed = {**wanted, "metadata": {**wanted["metadata"], "resourceVersion": version}}
                await api.replace(NETWORK_POLICIES, POLICY, changed)
            return
        except (ObjectExists, ObjectChanged, ObjectMissing):
            continue  # somebody else was quicker: look again


def _differs(found: Manifest, wanted: Manifest) -> bool:
    """The server leaves out what is empty."""
    names = {*found, *wanted}
    return any((found.get(name) or None) != (wanted.get(name) or None) for name in names)
