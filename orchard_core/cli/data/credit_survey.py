"""Before `orchard data credit` starts: what there is, what it takes, and whether that may be spent."""

from __future__ import annotations

import sys
import time

import typer
from pydantic import JsonValue

from orchard_core.cli.data.credit_estimators import Asked
from orchard_core.cli.data.credit_flags import CreditFlags
from orchard_core.cli.data.credit_words import plan_lines
from orchard_core.cli.exits import Exit
from orchard_core.cli.interrupt import cancelling, run_async
from orchard_core.cli.output import err, out
from orchard_core.datasets.credit.survey import Survey, survey
from orchard_core.errors import ConfigError, CreditRefused

_PRICED = {
    "judge": "--judge-option price.input=3 --judge-option price.output=15 (dollars per million tokens), "
    "or --yes to go on without",
    "branch": "--yes to go on without; --max-rollouts bounds what is measured of a trajectory",
}
"""What makes a price known, by the estimator."""
_CHEAPER = {
    "judge": "raise --max-cost, name a cheaper judge, or shorten its prompts with --context-tokens",
    "branch": "raise --max-cost, or lower --max-rollouts or --option k=",
}
"""What makes it cost less, by the estimator."""


def surveyed(asked: Asked) -> Survey:
    """Look at every rollout, and say what is to be done. Raises typer.Exit when it was stopped."""
    flags = asked.flags

    async def look() -> Survey:
        async with asked.opened() as (estimator, head):
            return await survey(
                asked.targets,
                estimator,
                head,
                threshold=flags.threshold,
                retry_failed=flags.retry_failed,
                on_look=looking,
            )

    looking = _Looking()
    found, code = run_async(cancelling(look))
    looking.end()
    if found is None:
        raise typer.Exit(code)
    for line in plan_lines(asked.flags, found):
        if flags.dry_run and not flags.as_json:
            out(line)
        else:
            err(line)
    return found


class _Looking:
    """Says on a terminal how many rollouts were looked at."""

    def __init__(self) -> None:
        self._live = sys.stderr.isatty()
        self._last = 0.0

    def __call__(self, found: Survey) -> None:
        now = time.monotonic()
        if self._live and now - self._last > 0.2:
            self._last = now
            seen = found.resolved + found.unresolved + found.left_out.total()
            sys.stderr.write(f"\rlooking at rollouts: {seen}")
            sys.stderr.flush()

    def end(self) -> None:
        """Wipe the line."""
        if self._live and self._last:
            sys.stderr.write("\r" + " " * 40 + "\r")
            sys.stderr.flush()


def check_affordable(flags: CreditFlags, found: Survey) -> None:
    """Raises CreditRefused when there is nothing to be credited or it would cost too much."""
    if not found.resolved + found.unresolved:
        raise CreditRefused(
            f"no rollout of {flags.path} has a score and an answer, so there is nothing to be credited",
            hint=f"orchard regrade {flags.path}, or orchard report {flags.path} to see why",
        )
    if flags.max_cost is None or not found.plan.calls + found.plan.rollouts:
        return
    total = found.total_usd
    if total is None and not flags.agreed:
        raise CreditRefused(
            "the price is unknown, so --max-cost cannot be kept",
            hint=_PRICED[flags.estimator],
        )
    if total is not None and total > flags.max_cost:
        raise CreditRefused(
            f"it would come to about ${total:.2f} in all, and --max-cost is ${flags.max_cost:.2f}",
            hint=_CHEAPER[flags.estimator],
        )


def agreed(flags: CreditFlags, found: Survey) -> bool:
    """Whether it may start: free, agreed to by flag, or answered on a terminal. Raises ConfigError."""
    free = found.plan.cost_usd == 0.0 and not found.plan.rollouts
    if free or flags.agreed or flags.max_cost is not None:
        return True
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise ConfigError(
            "nobody is there to be asked whether this may be spent", hint="--yes, or --max-cost DOLLARS"
        )
    try:
        return typer.confirm("start?", err=True)
    except typer.Abort:  # Ctrl-C, or the end of the input, instead of an answer
        err("\nnothing was started")
        raise typer.Exit(Exit.INTERRUPTED) from None


def survey_json(found: Survey) -> dict[str, JsonValue]:
    plan = found.plan
    return {
        "resolved": found.resolved,
        "unresolved": found.unresolved,
        "done": found.done,
        "left_out": dict(found.left_out),
        "refused": {str(path): reason for path, reason in found.refused.items()},
        "calls": plan.calls,
        "input_tokens": plan.input_tokens,
        "output_tokens": plan.output_tokens,
        "rollouts": plan.rollouts,
        "rollouts_at_most": plan.rollouts_at_most,
        "cost_usd": plan.cost_usd,
        "spent_usd": found.spent_usd,
    }
