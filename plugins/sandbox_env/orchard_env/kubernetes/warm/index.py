"""Which pods wait in pools, and which of them are whose sandboxes by now."""

from __future__ import annotations

from collections.abc import Callable

from orchard_env.kubernetes import labels
from orchard_env.kubernetes.informer import PodChange, PodInformer
from orchard_env.kubernetes.pods import PodView


class PoolIndex:
    """Kept up to date by the informer; looks nothing up by walking over all pods."""

    def __init__(self, pods: PodInformer, asked: Callable[[str, float], None]) -> None:
        """`asked` hears of each sandbox that came to be: its shape, and when, by the server's clock."""
        self._pods = pods
        self._asked = asked
        self._waiting: dict[str, set[str]] = {}
        self._claimed: dict[str, str] = {}
        for pod in pods:
            self._changed(PodChange(name=pod.name, before=None, after=pod))
        self.close = pods.subscribe(self._changed)
        """Hear of nothing any more."""

    def waiting(self, shape: str) -> list[PodView]:
        """The unclaimed pods of a shape, in whatever state."""
        found = (self._pods.get(name) for name in self._waiting.get(shape, ()))
        return [pod for pod in found if pod is not None]

    def shapes(self) -> list[str]:
        """Those of which pods wait."""
        return [*self._waiting]

    def pod_of(self, sandbox_id: str) -> str | None:
        """The name of the pod that was claimed for a sandbox."""
        return self._claimed.get(sandbox_id)

    def _changed(self, change: PodChange) -> None:
        before, after = change.before, change.after
        if before is not None and labels.POOL in before.labels:
            self._forget(before)
        if after is None:
            return
        shape = after.labels.get(labels.POOL)
        if labels.is_waiting(after) and shape is not None:
            self._waiting.setdefault(shape, set()).add(after.name)
        elif shape is not None and labels.is_ours(after):
            self._claimed[labels.sandbox_id(after)] = after.name
        shape = shape or after.labels.get(labels.MISSED)
        if shape is not None and labels.is_ours(after) and (before is None or labels.is_waiting(before)):
            self._asked(shape, labels.began(after))

    def _forget(self, pod: PodView) -> None:
        shape = pod.labels[labels.POOL]
        names = self._waiting.get(shape, set())
        names.discard(pod.name)
        if not names:
            self._waiting.pop(shape, None)
        told = pod.labels.get(labels.SANDBOX)
        if told is not None and self._claimed.get(told) == pod.name:
            del self._claimed[told]
