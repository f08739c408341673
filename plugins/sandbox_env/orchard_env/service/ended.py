"""The last jobs that ended, so that their results outlive their sandbox for a while."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from orchard_env.service.job import Job

_MOST_BYTES = 64 << 20
_MOST_NOTES = 20_000


class EndedJobs:
    """A cache within bounds. Losing it loses nothing that a living sandbox does not know."""

    def __init__(self) -> None:
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._bytes = 0
        self._notes: OrderedDict[str, str | Sequence[str]] = OrderedDict()

    def keep(self, job: Job) -> bool:
        """Remember its command, and the whole job when it has ended. Whether that is news."""
        if job.command is not None and job.id not in self._notes:
            self._notes[job.id] = job.command
            if len(self._notes) > _MOST_NOTES:
                self._notes.popitem(last=False)
        if job.told.open or job.id in self._jobs:
            return False
        self._jobs[job.id] = job
        self._bytes += job.weight
        while self._bytes > _MOST_BYTES:
            _, old = self._jobs.popitem(last=False)
            self._bytes -= old.weight
        return True

    def note(self, job_id: str) -> str | Sequence[str] | None:
        """The command of a job, as its client wrote it."""
        return self._notes.get(job_id)

    def get(self, job_id: str) -> Job | None:
        """A job that ended."""
        return self._jobs.get(job_id)
