"""The workers of one run, from the first pod to the last."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from orchard_core import HOPELESS, SandboxCreateFailed, Stop, WorkerNews, WorkersFailed, WorkOrder
from orchard_env.kubernetes.api import ClusterApi
from orchard_env.kubernetes.informer import PodChange, PodInformer
from orchard_env.kubernetes.pods import PodView
from orchard_env.kubernetes.waiting import PodWaiter
from orchard_env.kubernetes.workforce.jobs import JobView
from orchard_env.kubernetes.workforce.manifest import CONTAINER, index_of

_LOOK_S = 5.0
"""What grows worse by time alone, such as a pod for which there is no node, is looked at so often."""

_ENDED = frozenset({"Succeeded", "Failed"})


class Shift:
    """Knows how the workers fare. `take_jobs` and `take_pod` are told of changes."""

    def __init__(
        self,
        api: ClusterApi,
        order: WorkOrder,
        names: Sequence[str],
        *,
        pods: PodInformer,
        waiter: PodWaiter,
        told: Callable[[WorkerNews], None],
    ) -> None:
        self._api = api
        self._order = order
        self._open = set(names)
        self._pods = pods
        self._waiter = waiter
        self._told = told
        self._jobs: Mapping[str, JobView] | None = None
        self._changed = asyncio.Event()

    def take_jobs(self, jobs: Mapping[str, JobView]) -> None:
        """All Jobs as they are now."""
        self._jobs = jobs
        # A Job that ended well may be removed by the cluster after a day: that undoes nothing.
        self._open -= {name for name, job in jobs.items() if job.complete}
        self._changed.set()

    def take_pod(self, change: PodChange) -> None:
        """What happened to one pod."""
        text = _news(change)
        if text:
            self._told(WorkerNews(index=index_of(change.name), text=text))
        self._changed.set()

    async def last(self, stop: Stop) -> None:
        """Until all have ended well, or a stop is asked for. Raises WorkersFailed."""
        asked = asyncio.create_task(stop.once())
        try:
            while self._open and not stop.requested:
                await self._raise_if_given_up()
                changed = asyncio.create_task(self._changed.wait())
                await asyncio.wait({asked, changed}, timeout=_LOOK_S, return_when=asyncio.FIRST_COMPLETED)
                changed.cancel()
                self._changed.clear()
        finally:
            asked.cancel()

    async def _raise_if_given_up(self) -> None:
        for pod in self._pods:
            if _exit_code(pod) == HOPELESS:
                raise await self._failed(pod, f"ended with exit code {HOPELESS}, which no restart mends")
            error = self._waiter.failure(pod) if pod.phase == "Pending" and pod.deleting is None else None
            if isinstance(error, SandboxCreateFailed):
                raise self._error(index_of(pod.name), f"does not start: {error.message}")
        for name in sorted(self._open if self._jobs is not None else ()):
            job = (self._jobs or {}).get(name)
            if job is None:
                raise self._error(index_of(name), f"cannot go on: somebody deleted the Job {name}")
            if job.failed or job.failed_indexes:
                last = self._last_failed(name, job)
                raise await self._failed(last, f"was given up by the cluster ({job.failed or 'restarts'})")

    def _last_failed(self, job: str, view: JobView) -> PodView | None:
        failed = [one for one in self._pods if one.name.startswith(f"{job}-") and one.phase == "Failed"]
        first = view.failed_indexes.replace("-", ",").split(",")[0]
        of_index = [one for one in failed if first and index_of(one.name) == int(first)]
        return max(of_index or failed, key=lambda one: one.created, default=None)

    async def _failed(self, pod: PodView | None, how: str) -> WorkersFailed:
        if pod is None:
            return self._error(-1, how)
        words = await self._api.log(pod.name, container=CONTAINER)
        return self._error(index_of(pod.name), f"{how}; {_end_of(pod)}\n{words}".rstrip())

    def _error(self, index: int, how: str) -> WorkersFailed:
        who = f"worker {index}" if index >= 0 else "a worker"
        return WorkersFailed(
            f"{who} {how}", hint=f"mend the cause, then orchard run --resume --out {self._order.run}"
        )


def _news(change: PodChange) -> str:
    """A word about it, once for each pod that began or ended."""
    before, after = change.before, change.after
    if before is not None and (before.deleting is not None or before.phase in _ENDED):
        return ""
    if after is None or after.deleting is not None:
        return "its pod was deleted; started again"
    if after.phase == "Running" and (before is None or before.phase != "Running"):
        return f"started on {after.node}"
    if after.phase == "Failed":
        again = "" if _exit_code(after) == HOPELESS else "; started again"
        return f"{_end_of(after)}{again}"
    return ""


def _end_of(pod: PodView) -> str:
    code = _exit_code(pod)
    if pod.reason:
        return f"{pod.reason}: {pod.message}".rstrip(": ")
    reasons = [one.reason for one in pod.containers if one.name == CONTAINER and one.reason != "Error"]
    told = f" ({reasons[0]})" if reasons and reasons[0] else ""
    return f"its pod ended with exit code {code}{told}"


def _exit_code(pod: PodView) -> int | None:
    codes = [one.exit_code for one in pod.containers if one.name == CONTAINER and not one.init]
    return codes[0] if codes else None
