"""The last jobs that ended, so that their results outlive their sandbox for a while."""

from __future__ import annotations

from collections import OrderedDict

from orchard_env.service.job import Job

_MOST_BYTES = 64 << 20


class EndedJobs:
    """A cache within bounds. Losing it loses nothing that a living sandbox does not know."""

    def __init__(self) -> None:
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._bytes = 0

    def keep(self, job: Job) -> bool:
        """Remember a job that has ended. Whether that is news."""
        if job.told.open or job.id in self._jobs:
            return False
        self._jobs[job.id] = job
        self._bytes += job.weight
        while self._bytes > _MOST_BYTES:
            _, old = self._jobs.popitem(last=False)
            self._bytes -= old.weight
        return True

    def get(self, job_id: str) -> Job | None:
        """A job that ended."""
        return self._jobs.get(job_id)
