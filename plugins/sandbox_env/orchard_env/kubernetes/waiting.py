"""Waiting for a pod: until it is ready, or the cluster says why it never will be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Self

from orchard_env.kubernetes.api import ClusterApi
from orchard_env.kubernetes.failures import FailurePolicy, PodEvent
from orchard_env.kubernetes.informer import PodInformer
from orchard_env.kubernetes.pods import PodView


class PodWaiter:
    """Pods of one informer, with the cluster's warnings about them (one WATCH for all of them)."""

    def __init__(self, api: ClusterApi, pods: PodInformer, *, policy: FailurePolicy | None = None) -> None:
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        raise NotImplementedError

    async def __aexit__(self, *_: object) -> None:
        raise NotImplementedError

    async def reach(self, name: str, good: Callable[[PodView], bool], timeout: float) -> PodView:
        """The pod once `good` holds of it (such as: it has an address and its container runs).

        Raises what `failure_of` finds, within seconds of the event; SandboxGone for one that was deleted;
        TimeoutError, with what the cluster last said of it.
        """
        raise NotImplementedError

    def events_of(self, name: str) -> Sequence[PodEvent]:
        """The last few warnings about a pod, oldest first."""
        raise NotImplementedError
