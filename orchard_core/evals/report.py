"""What one run says, as data; `markdown` writes it for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial

from orchard_core.evals.attempts import Rate, count_attempts, is_valid, rate
from orchard_core.evals.statistics import METHOD, pass_at_k, pass_hat_k
from orchard_core.rollout.config import RunConfig
from orchard_core.rollout.store.entry import Finished, Planned, Spent
from orchard_core.rollout.store.run import Run
from orchard_core.rollout.store.state import RunState
from orchard_core.types.base import Record
from orchard_core.types.model import Usage
from orchard_core.types.rollout import Attribution, Outcome

UNSCORED_SHOWN = 50
"""Unscored rollouts that are named one by one."""


class KRate(Record):
    """A figure for k attempts."""

    k: int
    """Attempts."""
    rate: Rate
    """The figure."""


class Spending(Record):
    """What was used up by the finished rollouts, and by everything."""

    turns_mean: float | None
    """Model answers acted upon, a rollout."""
    calls: int
    """Model calls of the finished rollouts."""
    usage: Usage
    """Their tokens."""
    cost_usd: float | None
    """US dollars for them; None when any rollout's cost is unknown."""
    spent: Spent
    """All of it: with the tries that were repeated or stopped."""
    wall_clock_mean_s: float | None
    """Seconds a rollout took, from its start to its record."""
    wall_clock_s: float
    """Seconds from the first start to the last end, earlier tries included."""


class Row(Record):
    """One line of the table: the whole task set, or the tasks with one tag."""

    name: str
    """The task set, or a tag."""
    tasks: int
    """Tasks."""
    planned: int
    """Rollouts planned."""
    finished: int
    """Of these, finished."""
    valid: int
    """Of these, saying something about the agent."""
    scored: int
    """Of these, with a score."""
    passed: int
    """Of these, with a score of at least the threshold."""
    mean_score: float | None
    """Mean over the scored ones."""
    pass_at_1: Rate
    """Chance that one attempt passes."""
    pass_at: tuple[KRate, ...]
    """pass@k for k from 2 to the largest number of attempts."""
    pass_hat: tuple[KRate, ...]
    """pass^k for the same k."""
    spending: Spending
    """What was used up."""


class OutcomeCount(Record):
    """How many rollouts ended one way."""

    outcome: Outcome
    """How they ended."""
    attribution: Attribution
    """Whose doing that is."""
    count: int
    """How many."""


class Unscored(Record):
    """A finished rollout without a score."""

    rollout: str
    """Its id."""
    task: str
    """The task's id."""
    outcome: Outcome
    """How it ended."""
    attribution: Attribution
    """Whose doing that is."""
    error: str
    """Class of the error."""
    regradable: bool
    """It can be graded again without running the agent."""


class Report(Record):
    """One run."""

    run: str
    """The run directory."""
    config: RunConfig
    """What the run was asked to do, versions included."""
    threshold: float
    """A score of at least this has passed."""
    method: str = METHOD
    """How the intervals are made."""
    total: Row
    """The whole task set."""
    tags: tuple[Row, ...]
    """One row a tag, when there is more than one."""
    outcomes: tuple[OutcomeCount, ...]
    """Outcomes by frequency."""
    errors: Mapping[str, int]
    """Classes of the errors that decided outcomes, by frequency."""
    unscored: tuple[Unscored, ...]
    """Finished rollouts without a score, the first fifty."""
    unscored_count: int
    """All of them."""
    missing: int
    """Rollouts planned and not finished."""
    dropped: Mapping[str, str]
    """Tasks that the group sampler gave up, with the reason."""
    same_sandbox: int
    """Scores judged in the agent's own sandbox."""
    image_fallback: int
    """Rollouts run on the host's files instead of the image their task names."""
    timed_out: int
    """Rollouts whose agent ran out of time."""
    retried: int
    """Rollouts that were started more than once."""
    prompt_digests: int
    """Different first requests seen."""


def build_report(run: Run, *, threshold: float = 1.0) -> Report:
    """Read a run's journal; no shard is opened, so it is fast and works while the run is going on."""
    return report_of(run, run.state(), threshold=threshold)


def report_of(run: Run, state: RunState, *, threshold: float) -> Report:
    """The report of a journal that was read before."""
    planned = list(state.planned.values())
    finished = [state.finished[item.id] for item in planned if item.id in state.finished]
    unscored = [_unscored(entry) for entry in finished if entry.score is None]
    ends = Counter((entry.outcome, entry.attribution) for entry in finished)
    return Report(
        run=str(run.root),
        config=run.config,
        threshold=threshold,
        total=_row(run.config.taskset, planned, state, threshold),
        tags=_tag_rows(state, threshold),
        outcomes=tuple(
            OutcomeCount(outcome=outcome, attribution=attribution, count=count)
            for (outcome, attribution), count in ends.most_common()
        ),
        errors=dict(Counter(entry.error for entry in finished if entry.error).most_common()),
        unscored=tuple(unscored[:UNSCORED_SHOWN]),
        unscored_count=len(unscored),
        missing=len(planned) - len(finished),
        dropped=dict(state.dropped),
        same_sandbox=sum(entry.same_sandbox for entry in finished),
        image_fallback=sum(entry.image_fallback for entry in finished),
        timed_out=sum(entry.outcome is Outcome.TIMED_OUT for entry in finished),
        retried=sum(entry.tries > 1 for entry in finished),
        prompt_digests=len({entry.prompt_digest for entry in finished if entry.prompt_digest}),
    )


def _tag_rows(state: RunState, threshold: float) -> tuple[Row, ...]:
    by_tag: dict[str, list[Planned]] = {}
    for item in state.planned.values():
        for tag in item.tags:
            by_tag.setdefault(tag, []).append(item)
    if len(by_tag) < 2:
        return ()
    return tuple(_row(tag, items, state, threshold) for tag, items in sorted(by_tag.items()))


def _row(name: str, planned: Sequence[Planned], state: RunState, threshold: float) -> Row:
    finished = [state.finished[item.id] for item in planned if item.id in state.finished]
    lost = [state.lost[item.id] for item in planned if item.id in state.lost]
    attempts = count_attempts(planned, finished, threshold=threshold)
    scores = [entry.score for entry in finished if entry.score is not None]
    largest = max((task.planned for task in attempts), default=0)
    ks = [k for k in _powers(largest) if k > 1]
    return Row(
        name=name,
        tasks=len(attempts),
        planned=len(planned),
        finished=len(finished),
        valid=sum(is_valid(entry) for entry in finished),
        scored=len(scores),
        passed=sum(task.passed for task in attempts),
        mean_score=sum(scores) / len(scores) if scores else None,
        pass_at_1=rate(attempts, partial(pass_at_k, k=1)),
        pass_at=tuple(KRate(k=k, rate=rate(attempts, partial(pass_at_k, k=k))) for k in ks),
        pass_hat=tuple(KRate(k=k, rate=rate(attempts, partial(pass_hat_k, k=k))) for k in ks),
        spending=_spending(finished, lost, seconds=state.span_s(finished)),
    )


def _powers(largest: int) -> list[int]:
    """1, 2, 4, ... and the largest itself."""
    ks = [1 << bit for bit in range(largest.bit_length()) if 1 << bit <= largest]
    return sorted({*ks, largest}) if largest else []


def _spending(finished: Sequence[Finished], lost: Sequence[Spent], *, seconds: float) -> Spending:
    own = sum((entry.spent for entry in finished), Spent())
    count = len(finished)
    return Spending(
        turns_mean=sum(entry.turns for entry in finished) / count if count else None,
        calls=own.calls,
        usage=own.usage,
        cost_usd=own.cost_usd,
        spent=sum(lost, own),
        wall_clock_mean_s=sum(entry.finished_at - entry.started_at for entry in finished) / count
        if count
        else None,
        wall_clock_s=seconds,
    )


def _unscored(entry: Finished) -> Unscored:
    return Unscored(
        rollout=entry.id,
        task=entry.task,
        outcome=entry.outcome,
        attribution=entry.attribution,
        error=entry.error or "",
        regradable=entry.regradable,
    )
