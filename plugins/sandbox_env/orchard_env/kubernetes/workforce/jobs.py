"""The Jobs of a run as the cluster has them, by one LIST and one WATCH."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass

from orchard_core import OrchardError
from orchard_env.kubernetes.api import ClusterApi
from orchard_env.kubernetes.faults import HistoryGone
from orchard_env.kubernetes.resources import JOBS, Manifest, Selector

_PAUSE_S, _PAUSE_MAX_S = 0.2, 10.0

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobView:
    """What matters of one Job."""

    complete: bool
    """All its pods ended well."""
    failed: str
    """Why the cluster gave it up, such as BackoffLimitExceeded; empty: it did not."""
    failed_indexes: str
    """Of an Indexed Job, those that were given up, such as `1,3-5`."""

    @classmethod
    def read(cls, manifest: Manifest) -> JobView:
        """Of a Job as the server wrote it."""
        status = manifest.get("status") or {}
        true = {one["type"]: one for one in status.get("conditions") or () if one["status"] == "True"}
        failed = true.get("Failed") or true.get("FailureTarget") or {}
        return cls(
            complete="Complete" in true,
            failed=": ".join(filter(None, (failed.get("reason"), failed.get("message")))),
            failed_indexes=status.get("failedIndexes") or "",
        )


async def watch_jobs(
    api: ClusterApi, selector: Selector, told: Callable[[Mapping[str, JobView]], None]
) -> None:
    """Tell of all of them whenever one changed, until cancelled; a server that is away for a while changes
    nothing."""
    pause = _PAUSE_S
    while True:
        try:
            await _follow(api, selector, told)
            pause = _PAUSE_S
        except HistoryGone:
            continue
        except OrchardError as error:
            log.info("the Jobs cannot be watched: %s", error)
            pause = min(pause * 2, _PAUSE_MAX_S)
        await asyncio.sleep(random.uniform(pause / 2, pause))  # noqa: S311


async def _follow(api: ClusterApi, selector: Selector, told: Callable[[Mapping[str, JobView]], None]) -> None:
    known: dict[str, JobView] = {}
    version = ""
    async with aclosing(api.pages(JOBS, selector)) as pages:
        async for page in pages:
            known |= {item["metadata"]["name"]: JobView.read(item) for item in page.items}
            version = page.resource_version
    told(dict(known))
    async with aclosing(api.watch(JOBS, selector, resource_version=version)) as events:
        async for event in events:
            if event.type in {"ADDED", "MODIFIED"}:
                known[event.object["metadata"]["name"]] = JobView.read(event.object)
            elif event.type == "DELETED":
                known.pop(event.object["metadata"]["name"], None)
            else:
                continue
            told(dict(known))
