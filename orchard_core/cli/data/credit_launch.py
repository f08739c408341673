"""From the flags of `orchard data credit` to credits: what it takes, the question, the work, the summary."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import aclosing

import typer

from orchard_core.cli.data.credit_estimators import Asked
from orchard_core.cli.data.credit_flags import CreditFlags
from orchard_core.cli.data.credit_survey import agreed, check_affordable, survey_json, surveyed
from orchard_core.cli.data.credit_words import summary_lines
from orchard_core.cli.display.credit_progress import CreditProgress
from orchard_core.cli.display.credit_view import CreditDisplay, make_display
from orchard_core.cli.exits import Exit
from orchard_core.cli.interrupt import cancelling, run_async
from orchard_core.cli.output import err, out, print_json
from orchard_core.datasets.credit.assign import Assignment, AssignOptions
from orchard_core.datasets.credit.branch.estimator import BranchEstimator
from orchard_core.datasets.credit.judge.template import template
from orchard_core.datasets.credit.store import holds_credits, open_credits
from orchard_core.datasets.credit.summary import CreditSummary
from orchard_core.datasets.credit.survey import Survey
from orchard_core.types.credit import Credit


def launch(flags: CreditFlags) -> None:
    """Do it all. Raises typer.Exit unless every unresolved rollout has a curve."""
    asked = Asked.of(flags)
    found = surveyed(asked)
    check_affordable(flags, found)
    if flags.dry_run:
        if flags.as_json:
            print_json(survey_json(found))
        return
    if found.todo and not agreed(flags, found):
        err("nothing was started")
        raise typer.Exit(Exit.USAGE)
    capped, code = _worked(asked, found) if found.todo else (False, Exit.OK)
    summary = CreditSummary.of(_credits(asked))
    _print(asked, found, summary, capped=capped, stopped=code is not Exit.OK)
    if code is not Exit.OK:
        err("what is done is kept; the same command goes on", bold=True)
        raise typer.Exit(code)
    if summary.failed or found.refused or capped:
        raise typer.Exit(Exit.UNSOUND)


def _credits(asked: Asked) -> Iterator[Credit]:
    for target in asked.targets:
        if holds_credits(target.directory):
            yield from open_credits(target.directory)


def _worked(asked: Asked, found: Survey) -> tuple[bool, Exit]:
    """Whether it ended at the bound of cost, and the exit code of the signal that stopped it."""
    progress = CreditProgress(
        planned=found.resolved + found.unresolved,
        before=found.done,
        expected_usd=found.plan.cost_usd,
        expected_rollouts=found.plan.rollouts,
    )
    flags = asked.flags
    by = f"from {flags.reuse}" if flags.reuse else f"by {flags.estimator}"
    display = make_display(f"credit {by} · {flags.path}", progress, plain=flags.plain)
    with display.showing():
        capped, code = run_async(cancelling(lambda: _work(asked, found, display)))
    return bool(capped), code


async def _work(asked: Asked, found: Survey, display: CreditDisplay) -> bool:
    flags = asked.flags
    bound = None if flags.max_cost is None else max(0.0, flags.max_cost - (found.spent_usd or 0.0))
    options = AssignOptions(concurrency=flags.concurrency, max_usd=bound, retry_failed=flags.retry_failed)
    async with asked.opened() as (estimator, head):
        work = Assignment(
            targets=asked.targets,
            estimator=estimator,
            head=head,
            threshold=flags.threshold,
            options=options,
        )
        if isinstance(estimator, BranchEstimator):
            estimator.on_branch = lambda _branch: display.add_rollout()
        display.begin()
        try:
            async with aclosing(work.credits()) as credits_done:
                async for credit in credits_done:
                    display.add(credit, cost_usd=work.spent_usd, unpriced=work.unpriced)
        finally:
            display.end()
        return work.capped


def _print(asked: Asked, found: Survey, summary: CreditSummary, *, capped: bool, stopped: bool) -> None:
    places = [str(target.directory) for target in asked.targets if holds_credits(target.directory)]
    if asked.flags.as_json:
        print_json(
            {
                **summary.model_dump(mode="json"),
                "share": summary.share,
                "left_out": dict(found.left_out),
                "refused": {str(path): reason for path, reason in found.refused.items()},
                "capped": capped,
                "directories": [*places],
            }
        )
        return
    *lines, what_is_next = summary_lines(asked.flags, summary, found, places, capped=capped)
    for line in lines if stopped else (*lines, what_is_next):
        out(line)


def print_prompt(number: int, *, as_json: bool) -> None:
    """The judge's prompt, its number and its hash."""
    shown = template(number)
    if as_json:
        print_json({"version": shown.version, "sha256": shown.sha256, "text": shown.text})
        return
    err(f"judge's prompt {shown.version}, sha256 {shown.sha256}")
    out(shown.text.rstrip("\n"))
