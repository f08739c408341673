"""Ending a crew: its Jobs are deleted first, so that none makes a pod again, and then its pods."""

from __future__ import annotations

import asyncio
import logging
import time

from orchard_core import OrchardError, Stop, unbroken
from orchard_env.kubernetes.api import ClusterApi
from orchard_env.kubernetes.resources import JOBS, PODS, Manifest
from orchard_env.kubernetes.workforce.crew import Crew
from orchard_env.kubernetes.workforce.manifest import crew_selector

_AT_ONCE_S = 1
"""Grace of a pod that is to end at once. With 0 the cluster would call it gone while it may still run."""
_HURRY_S = 5.0
_LOOK_S = 0.25
_LATE_S = 30.0
"""A node that has not ended a pod so long after its grace is taken for lost."""

log = logging.getLogger(__name__)


async def remove_crew(api: ClusterApi, crew: Crew, *, grace_s: int, stop: Stop | None = None) -> None:
    """Return when none of it is left; `stop`, asked twice, ends the grace. Raises as the API does."""
    removing = asyncio.create_task(_remove(api, crew, grace_s))
    hurried = asyncio.create_task((stop or Stop()).twice())
    try:
        await asyncio.wait({removing, hurried}, return_when=asyncio.FIRST_COMPLETED)
        if not removing.done():
            await _delete(api, crew, _AT_ONCE_S)
            await asyncio.wait({removing}, timeout=_HURRY_S)
        if not removing.done():
            await _delete(api, crew, 0)  # nodes of before 1.27 shorten no grace that has begun
        await removing
    finally:
        hurried.cancel()
        removing.cancel()
        await unbroken(asyncio.gather(hurried, removing, return_exceptions=True))


async def remove_or_tell(api: ClusterApi, crew: Crew, *, grace_s: int, stop: Stop | None = None) -> None:
    """The same, for who has something else to raise: what cannot be removed now is when the run is next
    taken up."""
    try:
        await remove_crew(api, crew, grace_s=grace_s, stop=stop)
    except OrchardError as error:
        log.warning(
            "the Jobs of this run could not be removed (%s): kubectl -n %s delete jobs -l %s",
            error.message,
            crew.namespace,
            crew_selector(crew.name).labels,
        )


async def _remove(api: ClusterApi, crew: Crew, grace_s: int) -> None:
    await _delete(api, crew, grace_s)
    selector, late = crew_selector(crew.name), time.monotonic() + grace_s + _LATE_S
    while pods := await api.list(PODS, selector, namespace=crew.namespace):
        if time.monotonic() > late:
            await api.delete_all(PODS, selector, grace_s=0, namespace=crew.namespace)
        elif any(not pod["metadata"].get("deletionTimestamp") for pod in pods):
            # A Job's controller may make one more before it hears of the deletion.
            await _delete(api, crew, grace_s)
        for pod in filter(_has_ended, pods):
            # Its node takes up to half a minute more to clear up; nobody need wait for that.
            about = pod["metadata"]
            await api.delete(PODS, about["name"], uid=about["uid"], grace_s=0, namespace=crew.namespace)
        await asyncio.sleep(_LOOK_S)


def _has_ended(pod: Manifest) -> bool:
    status = pod.get("status") or {}
    containers = status.get("containerStatuses") or ()
    stopped = bool(containers) and all(_runs_no_more(one.get("state") or {}) for one in containers)
    return stopped or status.get("phase") in {"Succeeded", "Failed"}


def _runs_no_more(state: Manifest) -> bool:
    """It ended, or it waits for what a pod that is being deleted does not get, such as its image."""
    reason = (state.get("waiting") or {}).get("reason") or ""
    return "terminated" in state or reason not in {"", "ContainerCreating", "PodInitializing"}


async def _delete(api: ClusterApi, crew: Crew, grace_s: int) -> None:
    selector = crew_selector(crew.name)
    await api.delete_all(JOBS, selector, namespace=crew.namespace)
    await api.delete_all(PODS, selector, grace_s=grace_s, namespace=crew.namespace)
