"""The last jobs that ended, so that their results outlive their sandbox for a while."""

from __future__ import annotations

from collections import OrderedDict

from orchard_env.service.entry import Entry
from orchard_env.service.job import Job

_MOST_BYTES = 64 << 20


class EndedJobs:
    """A cache within bounds. Losing it loses nothing that a living sandbox does not know."""

    def __init__(self) -> None:
        self._jobs: OrderedDict[str, tuple[Job, Entry]] = OrderedDict()
        self._bytes = 0

    def keep(self, job: Job, home: Entry) -> bool:
        """Remember a job that has ended in its sandbox. Whether that is news."""
        known = self._jobs.get(job.id)
        if known is not None and known[1] is home:
            return False
        if known is not None:  # the same ids, in a later sandbox of the same name
            self._forget(job.id)
        if job.told.open:
            return False
        self._jobs[job.id] = (job, home)
        self._bytes += job.weight
        while self._bytes > _MOST_BYTES:
            self._forget(next(iter(self._jobs)))
        return True

    def _forget(self, job_id: str) -> None:
        old, _ = self._jobs.pop(job_id)
        self._bytes -= old.weight

    def get(self, job_id: str) -> tuple[Job, Entry] | None:
        """A job that ended, and the sandbox that it ended in."""
        return self._jobs.get(job_id)
