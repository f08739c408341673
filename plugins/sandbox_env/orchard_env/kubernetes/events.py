"""The cluster's Events about pods: why one waits, as its components tell it."""

from __future__ import annotations

import asyncio
import logging
import random
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Self

from orchard_core import OrchardError
from orchard_env.kubernetes.api import ClusterApi
from orchard_env.kubernetes.faults import HistoryGone
from orchard_env.kubernetes.pods import epoch
from orchard_env.kubernetes.resources import EVENTS, Manifest, Selector

AUTOSCALERS = ("cluster-autoscaler", "karpenter")
_KEPT, _PODS_MAX = 8, 4096
_PAUSE_S, _PAUSE_MAX_S = 1.0, 60.0

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class PodEvent:
    """An Event of the cluster that speaks of a pod."""

    pod: str
    """The pod's name."""
    uid: str
    """The pod's uid."""
    reason: str
    """FailedScheduling, FailedMount, TriggeredScaleUp..."""
    message: str
    """The cluster's sentence."""
    warning: bool
    """Its type is Warning."""
    first: float
    """When it was first seen, seconds since the epoch."""
    last: float
    """When it was last seen, seconds since the epoch."""
    source: str = ""
    """The component that tells."""

    @classmethod
    def read(cls, manifest: Manifest) -> PodEvent:
        """Of an Event as the server wrote it, in the old form or the new."""
        about = manifest.get("involvedObject") or {}
        made = manifest["metadata"].get("creationTimestamp")
        first = manifest.get("firstTimestamp") or manifest.get("eventTime") or made
        series = manifest.get("series") or {}
        last = series.get("lastObservedTime") or manifest.get("lastTimestamp") or first
        source = manifest.get("source") or {}
        return cls(
            pod=about.get("name") or "",
            uid=about.get("uid") or "",
            reason=manifest.get("reason") or "",
            message=manifest.get("message") or "",
            warning=manifest.get("type") == "Warning",
            first=epoch(first),
            last=epoch(last),
            source=source.get("component") or manifest.get("reportingComponent") or "",
        )


class PodEvents:
    """The last few warnings about each pod, and what autoscalers say of it, by one WATCH for each of them.

    A healthy pod's events are not asked for, so the load is small. Without the right to watch events it
    stays empty.
    """

    def __init__(self, api: ClusterApi, told: Callable[[str], None], *, namespace: str | None = None) -> None:
        self._api = api
        self._told = told
        self._namespace = namespace
        self._by_uid: OrderedDict[str, deque[PodEvent]] = OrderedDict()
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        sorts = ["type=Warning", *(f"source={name}" for name in AUTOSCALERS)]
        self._tasks = [
            asyncio.create_task(self._run(f"involvedObject.kind=Pod,{sort}"), name=f"events:{sort}")
            for sort in sorts
        ]
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def of(self, uid: str) -> Sequence[PodEvent]:
        """About the pod with this uid, oldest first."""
        return tuple(self._by_uid.get(uid, ()))

    async def ask(self, uid: str) -> Sequence[PodEvent]:
        """All that the cluster still has about one pod, by a call of its own; none without the right."""
        try:
            found = await self._api.list(
                EVENTS, Selector(fields=f"involvedObject.uid={uid}"), namespace=self._namespace
            )
        except OrchardError as error:
            log.info("no events could be had: %s", error)
            return self.of(uid)
        return sorted(map(PodEvent.read, found), key=lambda event: event.last)

    async def _run(self, fields: str) -> None:
        pause, version = _PAUSE_S, ""
        while True:
            try:
                version = version or await self._now(fields)
                version = await self._follow(fields, version)
                pause = _PAUSE_S
            except HistoryGone:
                version = ""
            except OrchardError as error:
                log.info("the cluster's events cannot be watched: %s", error)
                pause = min(pause * 2, _PAUSE_MAX_S)
            await asyncio.sleep(random.uniform(pause / 2, pause))  # noqa: S311

    async def _now(self, fields: str) -> str:
        pages = self._api.pages(
            EVENTS, Selector(fields=fields), namespace=self._namespace, size=1, patience_s=0
        )
        async with aclosing(pages):
            return (await anext(pages)).resource_version

    async def _follow(self, fields: str, version: str) -> str:
        watch = self._api.watch(
            EVENTS, Selector(fields=fields), namespace=self._namespace, resource_version=version
        )
        async with aclosing(watch):
            async for event in watch:
                if event.type == "OPENED":
                    continue
                version = event.object["metadata"]["resourceVersion"]
                if event.type in {"ADDED", "MODIFIED"}:
                    self._take(PodEvent.read(event.object))
        return version

    def _take(self, event: PodEvent) -> None:
        kept = self._by_uid.setdefault(event.uid, deque(maxlen=_KEPT))
        self._by_uid.move_to_end(event.uid)
        kept.append(event)
        if len(self._by_uid) > _PODS_MAX:
            self._by_uid.popitem(last=False)
        self._told(event.pod)
