"""Waiting for a pod: until it is ready, or the cluster says why it never will be."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from typing import Self

from orchard_core import NodeLost, OrchardError, SandboxError, SandboxEvicted, SandboxGone
from orchard_env.kubernetes.api import ClusterApi
from orchard_env.kubernetes.ended import taken_back
from orchard_env.kubernetes.events import PodEvent, PodEvents
from orchard_env.kubernetes.failures import FailurePolicy, failure_of, gone
from orchard_env.kubernetes.informer import PodInformer
from orchard_env.kubernetes.pods import PodView
from orchard_env.kubernetes.resources import NODES

log = logging.getLogger(__name__)

_LOOK_S = 1.0
"""A grace may have run out though nothing changed: a pod that is waited for is looked at so often."""


class PodWaiter:
    """Pods of one informer, with the cluster's warnings about them."""

    def __init__(
        self,
        api: ClusterApi,
        pods: PodInformer,
        *,
        policy: FailurePolicy | None = None,
        namespace: str | None = None,
    ) -> None:
        self._api = api
        self._pods = pods
        self._policy = policy or FailurePolicy()
        self._namespace = namespace
        self._events = PodEvents(api, pods.nudge, namespace=namespace)
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        await self._stack.enter_async_context(self._events)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def reach(self, name: str, good: Callable[[PodView], bool], timeout: float) -> PodView:
        """The pod once `good` holds of it (such as: its containers run and it has an address).

        The caller has created it and let the informer learn of it, or found it there. Raises what
        `failure_of` finds, within seconds of the event; SandboxGone for one that was deleted; TimeoutError
        with what the cluster last said of it.
        """
        ends = time.monotonic() + timeout
        last = self._pods.get(name)

        def decided(pod: PodView | None) -> bool:
            nonlocal last
            last = pod or last
            return pod is None or self._good(pod, good)

        while True:
            try:
                reached = await self._pods.until(name, decided, min(_LOOK_S, ends - time.monotonic()))
            except TimeoutError:
                if time.monotonic() >= ends:
                    raise TimeoutError(self._last_words(name, timeout)) from None
                continue
            except SandboxGone as error:
                if type(error) is SandboxGone and last is not None and last.deleting is not None:
                    raise await self.why_gone(name, last) from error
                raise await self._by_node(error, last) from None
            if reached is not None:
                return reached
            raise await self.why_gone(name, last)

    async def why_gone(self, name: str, last: PodView | None) -> SandboxGone:
        """What ended a pod that is no longer there, or being deleted; costs a call for its events."""
        events = await self._events.ask(last.uid) if last is not None else ()
        return await self._by_node(gone(name, last, events), last)

    async def _by_node(self, error: SandboxGone, pod: PodView | None) -> SandboxGone:
        """A spot node that was taken back says so itself, for who may read nodes."""
        lost = isinstance(error, NodeLost | SandboxEvicted) and error.by == "infrastructure"
        if not lost or pod is None or not pod.node:
            return error
        try:
            node = await self._api.get(NODES, pod.node)
        except OrchardError as refused:
            log.info("the node %s cannot be asked: %s", pod.node, refused)
            return error
        return error if node is None else taken_back(error, node)

    def failure(self, pod: PodView) -> SandboxError | None:
        """What is wrong with a pod at this moment, by its own words and the cluster's about it."""
        return failure_of(pod, self.events_of(pod), now=self._api.now(), policy=self._policy)

    def events_of(self, pod: PodView) -> Sequence[PodEvent]:
        """The last few warnings about a pod, oldest first."""
        return self._events.of(pod.uid)

    def _good(self, pod: PodView, good: Callable[[PodView], bool]) -> bool:
        failed = self.failure(pod)
        if failed is not None:
            raise failed
        return good(pod)

    def _last_words(self, name: str, timeout: float) -> str:
        pod = self._pods.get(name)
        if pod is None:
            return f"pod {name} did not come up within {timeout:g} s"
        said = [
            *(f"{one.name} {one.reason}: {one.message}" for one in pod.containers),
            *(f"{one.reason}: {one.message}" for one in pod.conditions),
            *(f"{event.reason}: {event.message}" for event in self.events_of(pod)[-2:]),
        ]
        return f"pod {name} did not come up within {timeout:g} s; it is {pod.phase}; {'; '.join(said)}"
