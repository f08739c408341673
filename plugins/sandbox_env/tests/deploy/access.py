"""What the chart's service account may do, asked with a token of it."""

from __future__ import annotations

import itertools
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import yaml
from kubernetes.aio import client, config

from ..kubernetes.conftest import Kubectl

RIGHTS = {
    ("", "pods"): {"create", "get", "list", "watch", "patch", "delete"},
    ("", "events"): {"list", "watch"},
    ("coordination.k8s.io", "leases"): {"create", "get", "list", "patch", "update", "delete"},
}
"""In the sandboxes' namespace; of Secrets it may get the seed by its name."""
VERBS = ("create", "get", "list", "watch", "patch", "update", "delete", "deletecollection")
RESOURCES = (
    ("", "pods"), ("", "pods/exec"), ("", "pods/log"), ("", "pods/portforward"), ("", "secrets"),
    ("", "configmaps"), ("", "events"), ("", "services"), ("", "serviceaccounts"),
    ("", "serviceaccounts/token"), ("", "namespaces"), ("", "nodes"), ("", "persistentvolumes"),
    ("apps", "deployments"), ("apps", "daemonsets"), ("batch", "jobs"), ("coordination.k8s.io", "leases"),
    ("networking.k8s.io", "networkpolicies"), ("rbac.authorization.k8s.io", "roles"),
    ("rbac.authorization.k8s.io", "rolebindings"), ("rbac.authorization.k8s.io", "clusterrolebindings"),
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"),
)  # fmt: skip


def account_kubeconfig(kubectl: Kubectl, namespace: str, account: str, file: Path) -> Path:
    """A kubeconfig of that service account."""
    asked = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": 3600},
    }
    made = kubectl(
        "create", "--raw", f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token", "-f", "-",
        text=json.dumps(asked),
    )  # fmt: skip
    told = json.loads(kubectl("config", "view", "--raw", "--minify", "--flatten", "-o", "json"))
    told["users"][0]["user"] = {"token": json.loads(made)["status"]["token"]}
    file.write_text(yaml.safe_dump(told))
    file.chmod(0o600)
    return file


def questions(namespaces: tuple[str, ...]) -> list[dict[str, str]]:
    """All that could be asked."""
    return [
        {"namespace": namespace, "group": group, "resource": whole, "subresource": part, "verb": verb}
        for namespace, (group, resource), verb in itertools.product(namespaces, RESOURCES, VERBS)
        for whole, _, part in [resource.partition("/")]
    ]


def ought(question: dict[str, str], sandboxes: str) -> bool:
    """Whether the answer ought to be yes."""
    rights = RIGHTS.get((question["group"], question["resource"]), set())
    return question["namespace"] == sandboxes and not question["subresource"] and question["verb"] in rights


@asynccontextmanager
async def asking(kubeconfig: Path) -> AsyncIterator[Callable[[dict[str, str]], Awaitable[bool]]]:
    """Asks the server whether the owner of the kubeconfig may do something."""
    settings = client.Configuration()
    load: Any = config.load_kube_config
    await load(config_file=str(kubeconfig), client_configuration=settings)
    async with client.ApiClient(configuration=settings) as connected:
        reviews: Any = client.AuthorizationV1Api(connected)

        async def allowed(question: dict[str, str]) -> bool:
            asked = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview"}
            body = {**asked, "spec": {"resourceAttributes": question}}
            return bool((await reviews.create_self_subject_access_review(body)).status.allowed)

        yield allowed
