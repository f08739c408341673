"""From the flags of `orchard data credit` to credits: what it takes, the question, the work, the summary."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import dataclass

import typer
from pydantic import JsonValue

from orchard_core.cli.data.credit_flags import CreditFlags
from orchard_core.cli.data.credit_words import plan_lines, summary_lines
from orchard_core.cli.display.credit_progress import CreditProgress
from orchard_core.cli.display.credit_view import CreditDisplay, make_display
from orchard_core.cli.exits import Exit
from orchard_core.cli.interrupt import cancelling, run_async
from orchard_core.cli.output import err, out, print_json
from orchard_core.datasets.credit.assign import Assignment, AssignOptions
from orchard_core.datasets.credit.estimator import Estimator
from orchard_core.datasets.credit.head import CreditHead
from orchard_core.datasets.credit.judge.template import template
from orchard_core.datasets.credit.store import holds_credits, open_credits
from orchard_core.datasets.credit.summary import CreditSummary
from orchard_core.datasets.credit.survey import Survey, survey
from orchard_core.datasets.credit.target import Target, find_targets
from orchard_core.errors import ConfigError, CreditRefused

Opener = Callable[[CreditFlags], AbstractAsyncContextManager[Estimator]]


def _open_judge(flags: CreditFlags) -> AbstractAsyncContextManager[Estimator]:
    from orchard_core.cli.data.credit_judge import open_judge

    return open_judge(flags)


def _open_branch(flags: CreditFlags) -> AbstractAsyncContextManager[Estimator]:
    from orchard_core.cli.data.credit_branch import open_branch

    return open_branch(flags)


ESTIMATORS: Mapping[str, Opener] = {"judge": _open_judge, "branch": _open_branch}
"""By what users write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What a start works on."""

    flags: CreditFlags
    targets: list[Target]
    opener: Opener

    def head(self, estimator: Estimator) -> CreditHead:
        """What its directories say of themselves."""
        return CreditHead(
            estimator=estimator.name,
            settings={**estimator.settings, "threshold": self.flags.threshold},
            source=str(self.flags.path),
            created_at=time.time(),
        )


def launch(flags: CreditFlags) -> None:
    """Do it all. Raises typer.Exit unless every unresolved rollout has a curve."""
    opener = ESTIMATORS.get(flags.estimator)
    if opener is None:
        raise ConfigError(
            f"there is no estimator {flags.estimator!r}", hint=f"there are {', '.join(ESTIMATORS)}"
        )
    targets = find_targets(flags.path, name=flags.name, out=flags.out)
    asked = _Asked(flags=flags, targets=targets, opener=opener)
    found = _surveyed(asked)
    _check(flags, found)
    if flags.dry_run:
        if flags.as_json:
            print_json(_survey_json(found))
        return
    if found.todo and not _agreed(flags, found):
        err("nothing was started")
        raise typer.Exit(Exit.USAGE)
    capped, code = _worked(asked, found) if found.todo else (False, Exit.OK)
    summary = CreditSummary.of(
        credit
        for target in targets
        if holds_credits(target.directory)
        for credit in open_credits(target.directory)
    )
    _print(asked, found, summary, capped=capped)
    if code is not Exit.OK:
        raise typer.Exit(code)
    if summary.failed or capped:
        raise typer.Exit(Exit.UNSOUND)


def _surveyed(asked: _Asked) -> Survey:
    """Look at every rollout, and say what is to be done. Raises typer.Exit when it was stopped."""
    flags = asked.flags

    async def look() -> Survey:
        async with asked.opener(flags) as estimator:
            return await survey(
                asked.targets,
                estimator,
                asked.head(estimator),
                threshold=flags.threshold,
                retry_failed=flags.retry_failed,
                on_look=_Looking(),
            )

    found, code = run_async(cancelling(look))
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
            sys.stderr.write(f"\rlooking at rollouts: {seen}\r")
            sys.stderr.flush()


def _check(flags: CreditFlags, found: Survey) -> None:
    """Raises CreditRefused when there is nothing to be credited or it would cost too much."""
    if not found.resolved + found.unresolved:
        raise CreditRefused(
            f"no rollout of {flags.path} has a score, so nobody knows which passed",
            hint=f"orchard regrade {flags.path}, or orchard report {flags.path} to see why",
        )
    if flags.max_cost is None or not found.plan.calls + found.plan.rollouts:
        return
    total = found.total_usd
    if total is None and not flags.agreed:
        raise CreditRefused(
            "the price is unknown, so --max-cost cannot be kept",
            hint="--judge-option price.input=3 --judge-option price.output=15 (dollars per million tokens), "
            "or --yes to go on without",
        )
    if total is not None and total > flags.max_cost:
        raise CreditRefused(
            f"it would come to about ${total:.2f}, earlier starts included; --max-cost is ${flags.max_cost:.2f}",
            hint="raise --max-cost, name a cheaper judge, or shorten its prompts with --context-tokens",
        )


def _agreed(flags: CreditFlags, found: Survey) -> bool:
    """Whether it may start: free, agreed to by flag, or answered on a terminal. Raises ConfigError."""
    free = found.plan.cost_usd == 0.0 and not found.plan.rollouts
    if free or flags.agreed or flags.max_cost is not None:
        return True
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise ConfigError(
            "nobody is there to be asked whether this may be spent", hint="--yes, or --max-cost DOLLARS"
        )
    return typer.confirm("start?", err=True)


def _worked(asked: _Asked, found: Survey) -> tuple[bool, Exit]:
    """Whether it ended at the bound of cost, and the exit code of the signal that stopped it."""
    progress = CreditProgress(
        planned=found.resolved + found.unresolved, before=found.done, expected_usd=found.plan.cost_usd
    )
    display = make_display(
        f"credit by {asked.flags.estimator} · {asked.flags.path}", progress, plain=asked.flags.plain
    )
    with display.showing():
        capped, code = run_async(cancelling(lambda: _work(asked, found, display)))
    return bool(capped), code


async def _work(asked: _Asked, found: Survey, display: CreditDisplay) -> bool:
    flags = asked.flags
    bound = None if flags.max_cost is None else max(0.0, flags.max_cost - (found.spent_usd or 0.0))
    options = AssignOptions(
        concurrency=flags.concurrency, max_usd=bound or None, retry_failed=flags.retry_failed
    )
    async with asked.opener(flags) as estimator:
        work = Assignment(
            targets=asked.targets,
            estimator=estimator,
            head=asked.head(estimator),
            threshold=flags.threshold,
            options=options,
        )
        display.begin()
        try:
            async with aclosing(work.credits()) as credits_done:
                async for credit in credits_done:
                    display.add(credit, cost_usd=work.spent_usd, unpriced=work.unpriced)
        finally:
            display.end()
            await estimator.close()
        return work.capped


def _print(asked: _Asked, found: Survey, summary: CreditSummary, *, capped: bool) -> None:
    places = [str(target.directory) for target in asked.targets]
    if asked.flags.as_json:
        print_json(
            {
                **summary.model_dump(mode="json"),
                "share": summary.share,
                "left_out": dict(found.left_out),
                "capped": capped,
                "directories": [*places],
            }
        )
        return
    for line in summary_lines(asked.flags, summary, found, places, capped=capped):
        out(line)


def _survey_json(found: Survey) -> dict[str, JsonValue]:
    plan = found.plan
    return {
        "resolved": found.resolved,
        "unresolved": found.unresolved,
        "done": found.done,
        "left_out": dict(found.left_out),
        "calls": plan.calls,
        "input_tokens": plan.input_tokens,
        "output_tokens": plan.output_tokens,
        "rollouts": plan.rollouts,
        "rollouts_at_most": plan.rollouts_at_most,
        "cost_usd": plan.cost_usd,
        "spent_usd": found.spent_usd,
    }


def print_prompt(number: int, *, as_json: bool) -> None:
    """The judge's prompt, its number and its hash."""
    shown = template(number)
    if as_json:
        print_json({"version": shown.version, "sha256": shown.sha256, "text": shown.text})
        return
    err(f"judge's prompt {shown.version}, sha256 {shown.sha256}")
    out(shown.text.rstrip("\n"))
