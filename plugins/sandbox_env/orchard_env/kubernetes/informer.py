"""All pods of one selection, kept up to date by one LIST and one WATCH."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Self

from orchard_core import OrchardError, SandboxUnavailable
from orchard_env.kubernetes.api import ClusterApi
from orchard_env.kubernetes.faults import HistoryGone
from orchard_env.kubernetes.pods import PodView
from orchard_env.kubernetes.resources import PODS, Manifest, Selector, WatchEvent

Until = Callable[[PodView | None], bool]
"""True when what is waited for is there. None: no such pod (not yet, or no longer). It may raise: the waiter
gets that."""

_PAUSE_S, _PAUSE_MAX_S = 0.2, 15.0
_SHORT_S = 1.0
"""A watch that ended sooner is not renewed at once: a server in trouble ends them as soon as they begin."""
_BURIED_MAX = 10_000

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class PodChange:
    """What happened to one pod."""

    name: str
    """Its name."""
    before: PodView | None
    """None: it is new."""
    after: PodView | None
    """None: it is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Waiter:
    predicate: Until
    future: asyncio.Future[PodView | None]


class PodInformer:
    """`async with PodInformer(api, selector) as pods:` waits for nothing; `wait_synced` does."""

    def __init__(
        self,
        api: ClusterApi,
        selector: Selector,
        *,
        namespace: str | None = None,
        silent_s: float = 90.0,
        page: int = 500,
    ) -> None:
        self._api = api
        self._selector = selector
        self._namespace = namespace
        self._silent_s = silent_s
        self._page = page
        self._pods: dict[str, PodView] = {}
        self._version = ""
        self._synced = asyncio.Event()
        self._last_error: OrchardError | None = None
        self._heard = float("-inf")
        self._lists = self._events = 0
        self._learned: set[str] | None = None
        """Pods learned of while a list is read; None while none is."""
        self._buried: OrderedDict[str, None] = OrderedDict()
        self._waiters: dict[str, list[_Waiter]] = {}
        self._told: list[Callable[[PodChange], None]] = []
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def start(self) -> None:
        """Begin to list and watch, behind the caller's back, until `close`."""
        self._task = asyncio.create_task(self._run(), name="pod-informer")
        self._task.add_done_callback(self._ended)

    async def close(self) -> None:
        """Stop; waiters get SandboxUnavailable."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await asyncio.wait([self._task])

    async def wait_synced(self, timeout: float) -> None:
        """Until a first LIST succeeded. Raises the last error of the LIST when the time is up."""
        try:
            async with asyncio.timeout(timeout):
                await self._synced.wait()
        except TimeoutError as error:
            told = SandboxUnavailable(f"the cluster did not list its pods within {timeout:g} s")
            raise (self._last_error or told) from error

    @property
    def synced(self) -> bool:
        """A LIST has succeeded, at least once: what is missing here is missing there (up to `stale_s`)."""
        return self._synced.is_set()

    @property
    def last_error(self) -> OrchardError | None:
        """Why the server does not tell at present; None while it does."""
        return self._last_error

    @property
    def stale_s(self) -> float:
        """Seconds since the server last said anything (bookmarks count, of which a quiet one sends one a
        minute); inf before the first word."""
        return time.monotonic() - self._heard

    @property
    def version(self) -> str:
        """The resourceVersion up to which all is known; empty before the first LIST."""
        return self._version

    @property
    def lists(self) -> int:
        """LISTs that succeeded."""
        return self._lists

    @property
    def events(self) -> int:
        """Events that the watches brought, bookmarks left out."""
        return self._events

    def __len__(self) -> int:
        return len(self._pods)

    def __iter__(self) -> Iterator[PodView]:
        """A moment's picture: changes meanwhile do no harm."""
        return iter(list(self._pods.values()))

    def get(self, name: str) -> PodView | None:
        """As last told."""
        return self._pods.get(name)

    def learn(self, manifest: Manifest) -> PodView:
        """Take in a pod that the caller just created or patched, before the watch tells of it."""
        view = PodView.read(manifest)
        if view.uid not in self._buried:
            if self._learned is not None:
                self._learned.add(view.name)
            self._put(view)
        return view

    async def until(self, name: str, predicate: Until, timeout: float) -> PodView | None:
        """The pod as it is when `predicate` holds of it, asked at each change of this pod and at no other.

        Before the first LIST nothing is asked of a pod that is not known. Raises TimeoutError, what the
        predicate raises, and SandboxUnavailable when the informer is closed.
        """
        view = self.get(name)
        if (view is not None or self.synced) and predicate(view):
            return view
        if self._task is not None and self._task.done():
            raise self._last_error or SandboxUnavailable("the informer is closed")
        waiter = _Waiter(predicate=predicate, future=asyncio.get_running_loop().create_future())
        self._waiters.setdefault(name, []).append(waiter)
        try:
            async with asyncio.timeout(timeout):
                return await waiter.future
        finally:
            self._forget(name, waiter)

    def nudge(self, name: str) -> None:
        """Let the waiters for this pod look again (something else than the pod changed)."""
        view = self.get(name)
        if view is None and not self.synced:
            return
        for waiter in list(self._waiters.get(name, ())):
            if not waiter.future.done():
                _ask(waiter, view)

    def subscribe(self, told: Callable[[PodChange], None]) -> Callable[[], None]:
        """`told` hears of each change, in order; it must be quick and never raise. Gives what ends it."""
        self._told.append(told)
        return lambda: self._told.remove(told)

    async def _run(self) -> None:
        pause = _PAUSE_S
        while True:
            began, seen = time.monotonic(), self._events
            try:
                if not self._version:
                    await self._list()
                await self._follow()
            except HistoryGone:
                log.info("the cluster forgot where this watch stood: listing again")
                self._version = ""
            except OrchardError as error:
                self._last_error = error
            went_well = self._events > seen or time.monotonic() - began > _SHORT_S
            if went_well and self._last_error is None:
                pause = _PAUSE_S
                continue
            await asyncio.sleep(random.uniform(pause / 2, pause))  # noqa: S311
            pause = min(pause * 2, _PAUSE_MAX_S)

    async def _list(self) -> None:
        """Take all of it in; what is not in a whole list is gone. A list that fails changes nothing."""
        learned: set[str] = set()
        self._learned = learned
        try:
            version = await self._list_pages(learned)
        finally:
            self._learned = None
        self._version = version
        self._lists += 1
        self._last_error = None
        self._synced.set()
        for name in list(self._waiters):
            self.nudge(name)

    async def _list_pages(self, learned: set[str]) -> str:
        listed: set[str] = set()
        version = ""
        pages = self._api.pages(
            PODS, self._selector, namespace=self._namespace, size=self._page, patience_s=0
        )
        async with aclosing(pages):
            async for page in pages:
                self._heard = time.monotonic()
                version = page.resource_version
                for manifest in page.items:
                    view = PodView.read(manifest)
                    listed.add(view.name)
                    self._put(view)
        # A pod that was created while the list was read need not be on it.
        for name in self._pods.keys() - listed - learned:
            self._drop(name)
        return version

    async def _follow(self) -> None:
        """Take in what changes, until the watch ends."""
        events = self._api.watch(
            PODS,
            self._selector,
            namespace=self._namespace,
            resource_version=self._version,
            silent_s=self._silent_s,
        )
        async with aclosing(events):
            async for event in events:
                self._heard = time.monotonic()
                self._last_error = None
                self._take(event)

    def _take(self, event: WatchEvent) -> None:
        if event.type == "OPENED":
            return
        self._version = event.object["metadata"]["resourceVersion"]
        if event.type == "BOOKMARK":
            return
        self._events += 1
        view = PodView.read(event.object)
        if event.type != "DELETED":
            self._put(view)
            return
        known = self._pods.get(view.name)
        self._bury(view.uid)
        if known is not None and known.uid == view.uid:
            self._drop(view.name, last=view)

    def _put(self, view: PodView) -> None:
        before = self._pods.get(view.name)
        if before is not None and not _follows(before, view):
            return
        if before is not None and before.uid != view.uid:
            self._bury(before.uid)
        self._pods[view.name] = view
        self._changed(PodChange(name=view.name, before=before, after=view))

    def _drop(self, name: str, last: PodView | None = None) -> None:
        before = self._pods.pop(name)
        self._bury(before.uid)
        self._changed(PodChange(name=name, before=last or before, after=None))

    def _bury(self, uid: str) -> None:
        """A create whose answer comes later than the word of its pod's end brings it back no more."""
        self._buried[uid] = None
        if len(self._buried) > _BURIED_MAX:
            self._buried.popitem(last=False)

    def _changed(self, change: PodChange) -> None:
        for told in list(self._told):
            told(change)
        if change.name in self._waiters:
            self.nudge(change.name)

    def _forget(self, name: str, waiter: _Waiter) -> None:
        waiters = self._waiters[name]
        waiters.remove(waiter)
        if not waiters:
            del self._waiters[name]

    def _ended(self, task: asyncio.Task[None]) -> None:
        broke = None if task.cancelled() else task.exception()
        if broke is not None:
            log.error("the pod informer broke", exc_info=broke)
        self._last_error = SandboxUnavailable(
            f"the informer broke: {broke!r}" if broke else "the informer is closed"
        )
        for waiters in list(self._waiters.values()):
            for waiter in waiters:
                if not waiter.future.done():
                    waiter.future.set_exception(self._last_error)


def _ask(waiter: _Waiter, view: PodView | None) -> None:
    """The predicate is the caller's own: whatever it raises is the caller's."""
    try:
        if waiter.predicate(view):
            waiter.future.set_result(view)
    except Exception as error:  # noqa: BLE001
        waiter.future.set_exception(error)


def _follows(before: PodView, after: PodView) -> bool:
    """`after` is no older. Versions of one pod are numbers in the order of its changes."""
    old, new = before.resource_version, after.resource_version
    if before.uid != after.uid or not (old.isdecimal() and new.isdecimal()):
        return True
    return int(new) >= int(old)
