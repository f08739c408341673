"""Counts of a run, kept up to date by its events alone."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field

from orchard_core.types.events import (
    CallFinished,
    Event,
    PhaseStarted,
    RolloutFinished,
    RolloutStarted,
    RunFinished,
    RunStarted,
)
from orchard_core.types.rollout import Outcome, Phase

WINDOW_S = 15.0
"""Tokens a second are those of the last so many seconds."""


@dataclass(slots=True, kw_only=True)
class Running:
    """A rollout that has a slot."""

    task: str
    """Its task's id."""
    attempt: int
    """Which attempt, from 0."""
    started_at: float
    """Seconds since the epoch."""
    phase: Phase | None = None
    """Where it is."""
    calls: int = 0
    """Model calls answered."""


@dataclass(slots=True, kw_only=True)
class Progress:
    """The state of one run. Times come from the events, so that nothing here reads a clock."""

    planned: int = 0
    """Rollouts the run consists of."""
    resumed: int = 0
    """Of these, finished before this start."""
    done: int = 0
    """Finished by this start."""
    retries: int = 0
    """Rollouts that failed for a reason that may be retried, and were queued again."""
    running: dict[str, Running] = field(default_factory=dict)
    """By rollout id, oldest first."""
    outcomes: Counter[Outcome] = field(default_factory=Counter)
    """How the finished ones ended."""
    scored: int = 0
    """Finished ones that have a score."""
    score_sum: float = 0.0
    """Sum of those scores."""
    cost_usd: float = 0.0
    """US dollars of the calls whose cost is known."""
    unpriced: bool = False
    """A call's cost is unknown, so the true cost is higher."""
    output_tokens: int = 0
    """Sampled so far."""
    started_at: float | None = None
    """When this start began, seconds since the epoch."""
    ended_at: float | None = None
    """When the run said that it ends, seconds since the epoch."""
    cancelled: bool = False
    """The user stopped it."""
    recent: deque[tuple[float, int]] = field(default_factory=deque)
    """(when, sampled tokens) of the last calls."""

    def handle(self, event: Event) -> None:
        """Take in one event."""
        match event:
            case RunStarted():
                self.planned, self.resumed, self.started_at = event.planned, event.finished, event.at
            case RolloutStarted():
                self.running[event.rollout] = Running(
                    task=event.task, attempt=event.attempt, started_at=event.at
                )
            case PhaseStarted():
                if event.rollout in self.running:
                    self.running[event.rollout].phase = event.phase
            case CallFinished():
                self._call(event)
            case RolloutFinished():
                self._finished(event)
            case RunFinished():
                self.ended_at, self.cancelled = event.at, event.cancelled
                self.running.clear()

    def _call(self, event: CallFinished) -> None:
        if event.rollout in self.running:
            self.running[event.rollout].calls += 1
        self._spent(event)

    def _spent(self, event: CallFinished | RolloutFinished) -> None:
        self.output_tokens += event.usage.output
        self.recent.append((event.at, event.usage.output))
        if event.cost_usd is None:
            self.unpriced = True
        else:
            self.cost_usd += event.cost_usd

    def _finished(self, event: RolloutFinished) -> None:
        running = self.running.pop(event.rollout, None)
        if event.usage.output and (running is None or not running.calls):
            self._spent(event)  # it was driven elsewhere: no call of it was told
        if event.will_retry:
            self.retries += 1
            return
        self.done += 1
        self.outcomes[event.outcome] += 1
        if event.score is not None:
            self.scored += 1
            self.score_sum += event.score

    @property
    def finished(self) -> int:
        """Finished in total, earlier starts included."""
        return self.resumed + self.done

    @property
    def mean_reward(self) -> float | None:
        """Mean over those with a score; None while there is none."""
        return self.score_sum / self.scored if self.scored else None

    @property
    def unscored(self) -> int:
        """Finished by this start, without a score."""
        return self.done - self.scored

    @property
    def ended(self) -> bool:
        """The run has said that it ends."""
        return self.ended_at is not None

    def elapsed_s(self, now: float) -> float:
        """Since this start, until its end."""
        if self.started_at is None:
            return 0.0
        return max(0.0, (now if self.ended_at is None else self.ended_at) - self.started_at)

    def tokens_per_s(self, now: float) -> float:
        """Sampled tokens a second over the last WINDOW_S seconds; once it has ended, over all of it."""
        if self.ended:
            whole = self.elapsed_s(now)
            return self.output_tokens / whole if whole > 0 else 0.0
        while self.recent and self.recent[0][0] < now - WINDOW_S:
            self.recent.popleft()
        span = min(WINDOW_S, self.elapsed_s(now))
        return sum(tokens for _, tokens in self.recent) / span if span > 0 else 0.0

    def eta_s(self, now: float) -> float | None:
        """Seconds left at the rate so far; None until one has finished."""
        left = self.planned - self.finished
        if left <= 0:
            return 0.0
        return self.elapsed_s(now) / self.done * left if self.done else None
