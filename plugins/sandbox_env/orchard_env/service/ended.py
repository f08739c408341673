"""The last jobs that ended, so that their results outlive their sandbox for a while."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from orchard_env.service.job import Job


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedJob:
    """Plain data: nothing of a sandbox that may be gone."""

    job: Job
    """How it ended."""
    home: int
    """The serial of the sandbox that it ended in: ids are taken again."""


@dataclass(slots=True)
class _Shelf:
    """One tenant's, the oldest first."""

    jobs: OrderedDict[str, EndedJob] = field(default_factory=OrderedDict)
    weight: int = 0

    def take(self, job_id: str) -> int:
        """Forget one; the bytes that it took."""
        old = self.jobs.pop(job_id, None)
        weight = 0 if old is None else old.job.weight
        self.weight -= weight
        return weight


class EndedJobs:
    """A cache within a bound of bytes, which tenants share alike: the oldest job of the one who has most goes
    first. Losing it loses nothing that a living sandbox does not know."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._shelves: dict[str, _Shelf] = {}
        self._owners: dict[str, str] = {}
        self._weight = 0

    @property
    def weight(self) -> int:
        """Bytes that it takes, about."""
        return self._weight

    def keep(self, job: Job, home: int) -> bool:
        """Remember a job that has ended in the sandbox with that serial. Whether that is news."""
        known = self.get(job.id)
        if known is not None and known.home == home:
            return False
        if known is not None:  # the same ids, in a later sandbox of the same name
            self._forget(known.job)
        if job.told.open:
            return False
        shelf = self._shelves.setdefault(job.tenant, _Shelf())
        shelf.jobs[job.id] = EndedJob(job=job, home=home)
        self._owners[job.id] = job.tenant
        shelf.weight += job.weight
        self._weight += job.weight
        while self._weight > self._most:
            fullest = max(self._shelves.values(), key=lambda shelf: shelf.weight)
            self._forget(next(iter(fullest.jobs.values())).job)
        return True

    def _forget(self, job: Job) -> None:
        tenant = self._owners.pop(job.id)
        self._weight -= self._shelves[tenant].take(job.id)
        if not self._shelves[tenant].jobs:
            del self._shelves[tenant]

    def get(self, job_id: str) -> EndedJob | None:
        """A job that ended, and where; None when it is not known, or no more."""
        tenant = self._owners.get(job_id)
        return None if tenant is None else self._shelves[tenant].jobs[job_id]
