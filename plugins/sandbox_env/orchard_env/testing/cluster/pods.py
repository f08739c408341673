"""What a scheduler and a kubelet would tell of pods in which nothing runs."""

from __future__ import annotations

import asyncio

from orchard_env.kubernetes.resources import Manifest
from orchard_env.testing.cluster.settings import Settings
from orchard_env.testing.cluster.store import Key, Store, stamp

NODES = 500
_TEMPLATE: Manifest = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {},
    "spec": {"containers": [{"name": "sandbox", "image": "busybox:1.36"}]},
}


class Kubelet:
    """Brings pods up and takes them down after the latencies asked for."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._settings = settings
        self._count = self._filled = 0

    def fill(self, count: int, namespace: str, template: Manifest | None = None) -> None:
        """Pods that stand already, all like the template but for their names."""
        whole = template or _TEMPLATE
        labels = {**self._settings.labels, **(whole["metadata"].get("labels") or {})}
        for number in range(self._filled, self._filled + count):
            name = f"standing-{number:06}"
            about = {**whole["metadata"], "name": name, "labels": {**labels, "orchard.dev/sandbox": name}}
            self._store.add("pods", namespace, self.running({**whole, "metadata": about}))
        self._filled += count

    def touch(self, count: int) -> None:
        """Change so many pods, one after the other, as their nodes do when they report."""
        pods = self._store.all("pods")
        for key in list(pods)[:count]:
            about = pods[key]["metadata"]
            notes = {**(about.get("annotations") or {}), "orchard.dev/touched": str(self._store.version)}
            self._store.put("pods", key, {**pods[key], "metadata": {**about, "annotations": notes}})

    def renew(self, count: int) -> None:
        """So many pods end, and as many others come."""
        for key in list(self._store.all("pods"))[:count]:
            self._store.drop("pods", key)
        self.fill(count, "default")

    def created(self, pod: Manifest) -> None:
        """Bind it, then let it run."""
        about = pod["metadata"]
        key = (about["namespace"], about["name"])
        loop = asyncio.get_running_loop()
        loop.call_later(self._settings.schedule_s, self._bind, key, about["uid"])
        loop.call_later(self._settings.schedule_s + self._settings.start_s, self._run, key, about["uid"])

    def deleted(self, pod: Manifest, grace_s: float | None) -> Manifest:
        """Mark it; it is gone a little later. Without grace at once."""
        about = pod["metadata"]
        key = (about["namespace"], about["name"])
        if grace_s == 0:
            return self._store.drop("pods", key) or pod
        grace = 30.0 if grace_s is None else grace_s
        marks = {"deletionTimestamp": stamp(), "deletionGracePeriodSeconds": int(grace)}
        marked = self._store.put("pods", key, {**pod, "metadata": {**about, **marks}})
        wait = min(self._settings.stop_s, grace)
        asyncio.get_running_loop().call_later(wait, self._gone, key, about["uid"])
        return marked

    def running(self, pod: Manifest) -> Manifest:
        """The pod as it is when all is well."""
        self._count += 1
        number = self._count
        containers = [_runs(one["name"], one["image"], number) for one in pod["spec"]["containers"]]
        whole = ("Initialized", "Ready", "ContainersReady", "PodScheduled")
        status = {
            "phase": "Running",
            "conditions": [{"type": one, "status": "True", "lastTransitionTime": stamp()} for one in whole],
            "hostIP": f"10.0.{number % NODES // 250}.{number % 250 + 1}",
            # Loopback: whoever wants agents serves them on all its addresses.
            "podIP": f"127.{number // 62500 % 250 + 1}.{number // 250 % 250}.{number % 250 + 1}",
            "startTime": stamp(),
            "containerStatuses": containers,
            "qosClass": "Burstable",
        }
        return {**pod, "spec": {**pod["spec"], "nodeName": f"node-{number % NODES}"}, "status": status}

    def _pod(self, key: Key, uid: str) -> Manifest | None:
        pod = self._store.all("pods").get(key)
        return pod if pod is not None and pod["metadata"]["uid"] == uid else None

    def _bind(self, key: Key, uid: str) -> None:
        if (pod := self._pod(key, uid)) is not None:
            condition = {"type": "PodScheduled", "status": "True", "lastTransitionTime": stamp()}
            status = {"phase": "Pending", "conditions": [condition]}
            self._store.put("pods", key, {**pod, "status": status})

    def _run(self, key: Key, uid: str) -> None:
        pod = self._pod(key, uid)
        if pod is not None and "deletionTimestamp" not in pod["metadata"]:
            self._store.put("pods", key, self.running(pod))

    def _gone(self, key: Key, uid: str) -> None:
        if self._pod(key, uid) is not None:
            self._store.drop("pods", key)


def _runs(name: str, image: str, number: int) -> Manifest:
    digest = f"{number:064x}"
    return {
        "name": name,
        "image": image,
        "imageID": f"sha256:{digest}",
        "containerID": f"containerd://{digest}",
        "ready": True,
        "started": True,
        "restartCount": 0,
        "state": {"running": {"startedAt": stamp()}},
        "lastState": {},
    }
