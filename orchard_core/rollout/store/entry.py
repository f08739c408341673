"""The lines of a run's journal."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from orchard_core.types.base import Record
from orchard_core.types.model import Usage
from orchard_core.types.rollout import Attribution, Outcome


class Spent(Record):
    """What model calls used up."""

    calls: int = 0
    """Model calls of any kind."""
    call_retries: int = 0
    """Times the gateway sent one of them again."""
    usage: Usage = Usage()
    """Token counts."""
    cost_usd: float | None = 0.0
    """US dollars; None: unknown."""

    def __add__(self, other: Spent) -> Spent:
        known = self.cost_usd is not None and other.cost_usd is not None
        return Spent(
            calls=self.calls + other.calls,
            call_retries=self.call_retries + other.call_retries,
            usage=self.usage + other.usage,
            cost_usd=(self.cost_usd or 0.0) + (other.cost_usd or 0.0) if known else None,
        )


class Planned(Record):
    """A rollout the run consists of."""

    type: Literal["planned"] = "planned"
    """Tells lines apart."""
    id: str
    """The rollout's id."""
    task: str
    """The task's id."""
    attempt: int
    """Which attempt, from 0."""
    seed: int
    """Seed of everything that draws."""
    tags: tuple[str, ...] = ()
    """The task's tags, so that a report needs no shard."""
    digest: str = ""
    """The task's content hash."""
    prompt: str = ""
    """Hash of the task's instruction."""


class Started(Record):
    """A rollout took a slot."""

    type: Literal["started"] = "started"
    """Tells lines apart."""
    id: str
    """The rollout's id."""
    tries: int
    """Which try this is, from 1."""
    at: float
    """Seconds since the epoch."""


class Retried(Record):
    """A try failed for a reason that may be retried; its record is not kept."""

    type: Literal["retried"] = "retried"
    """Tells lines apart."""
    id: str
    """The rollout's id."""
    tries: int
    """Which try this was, from 1."""
    outcome: Outcome
    """How it ended."""
    attribution: Attribution
    """Whose doing that was."""
    error: str
    """Class of the error."""
    at: float
    """Seconds since the epoch."""
    spent: Spent = Spent(cost_usd=None)
    """What it had used up; it is part of no finished rollout."""


class Finished(Record):
    """A rollout is in a shard. A later line with the same id replaces an earlier one."""

    type: Literal["finished"] = "finished"
    """Tells lines apart."""
    id: str
    """The rollout's id."""
    task: str
    """The task's id."""
    attempt: int
    """Which attempt, from 0."""
    tries: int
    """How often it was started."""
    outcome: Outcome
    """How it ended."""
    attribution: Attribution
    """Whose doing that is."""
    score: float | None
    """The score, None when there is none."""
    same_sandbox: bool = False
    """Judged in the agent's own sandbox."""
    regradable: bool = False
    """Its verifier failed, and what it left can be graded without running the agent again."""
    image_fallback: bool = False
    """It ran on the host's files instead of the image its task names."""
    error: str | None = None
    """Class of the error that decided the outcome."""
    turns: int = 0
    """Model answers acted upon."""
    calls: int = 0
    """Model calls of any kind."""
    call_retries: int = 0
    """Times the gateway sent one of them again."""
    usage: Usage = Usage()
    """Token counts."""
    cost_usd: float | None = None
    """US dollars; None: unknown."""
    started_at: float
    """Seconds since the epoch."""
    finished_at: float
    """Seconds since the epoch."""
    prompt_digest: str = ""
    """Hash of the first request."""
    shard: int
    """Number of the shard."""
    offset: int
    """Where its frame begins, bytes."""
    length: int
    """Bytes of its frame, header included."""

    @property
    def spent(self) -> Spent:
        """What its newest try used up."""
        return Spent(
            calls=self.calls, call_retries=self.call_retries, usage=self.usage, cost_usd=self.cost_usd
        )


class Cancelled(Record):
    """A rollout was stopped before its end; a resumed run starts it again."""

    type: Literal["cancelled"] = "cancelled"
    """Tells lines apart."""
    id: str
    """The rollout's id."""
    at: float
    """Seconds since the epoch."""
    spent: Spent = Spent(cost_usd=None)
    """What it had used up; it is part of no finished rollout."""


class Dropped(Record):
    """The group sampler gave a task up."""

    type: Literal["dropped"] = "dropped"
    """Tells lines apart."""
    task: str
    """The task's id."""
    reason: str
    """Why."""


Entry = Annotated[Planned | Started | Retried | Finished | Cancelled | Dropped, Field(discriminator="type")]
