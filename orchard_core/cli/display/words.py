"""How figures are written."""

from __future__ import annotations

from orchard_core.cli.display.progress import Progress
from orchard_core.evals.figures import count as count


def clock(seconds: float | None) -> str:
    """`1:05`, `2:03:04`, or `?`."""
    if seconds is None:
        return "?"
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02d}:{second:02d}" if hours else f"{minute}:{second:02d}"


def money(usd: float | None, *, partial: bool = False) -> str:
    """`$0.0123`, `$1.50`, `>=$1.50` when some calls have no known price, `cost unknown` when none has."""
    if usd is None or (partial and usd == 0):
        return "cost unknown"
    text = f"${usd:.2f}" if usd >= 1 or usd == 0 else f"${usd:.4f}"
    return f">={text}" if partial else text


def reward(progress: Progress) -> str:
    """The mean and, beside it, how many finished without a score."""
    mean = progress.mean_reward
    text = "reward -" if mean is None else f"reward {mean:.3f}"
    return f"{text} ({progress.unscored} without score)" if progress.unscored else text


def figures(progress: Progress, now: float) -> list[str]:
    """Every figure of the display but the bar."""
    parts = [
        f"running {len(progress.running)}",
        f"done {progress.finished}/{progress.planned}",
        reward(progress),
        f"{count(progress.tokens_per_s(now))} tok/s",
        money(progress.cost_usd, partial=progress.unpriced),
    ]
    if progress.retries:
        parts.append(f"rollouts retried {progress.retries}")
    return parts


def outcomes(progress: Progress) -> str:
    """`completed 30, timed_out 2`, the most frequent first."""
    return ", ".join(f"{outcome.value} {number}" for outcome, number in progress.outcomes.most_common())
