"""What `orchard data credit` says before and after its work."""

from __future__ import annotations

from collections import Counter

from orchard_core.cli.data.credit_flags import CreditFlags
from orchard_core.cli.display.words import count, money
from orchard_core.datasets.credit.summary import CreditSummary
from orchard_core.datasets.credit.survey import Survey
from orchard_core.evals.clean import clean_line

_ERRORS = 5
"""Different errors that are shown."""


def plan_lines(flags: CreditFlags, found: Survey) -> list[str]:
    """What there is, and what crediting it is expected to take."""
    plan = found.plan
    lines = [
        f"source     {clean_line(str(flags.path))}",
        f"rollouts   {found.resolved} resolved, {found.unresolved} unresolved{_left_out(found.left_out)}",
        *_refused(found),
        f"to do      {found.todo}, of which {plan.items} are estimated; {found.done} were done before",
    ]
    if plan.calls:
        tokens = f"about {count(plan.input_tokens)} tokens in, {count(plan.output_tokens)} out"
        lines.append(f"calls      {plan.calls}: {tokens}, repairs not counted")
    if plan.rollouts:
        lines.append(f"measuring  about {plan.rollouts} rollouts, at most {plan.rollouts_at_most}")
    if plan.items:
        before = f"; {money(found.spent_usd)} spent before" if found.done else ""
        expected = _expected(plan.cost_usd) if plan.calls + plan.rollouts else "nothing: nobody is asked"
        lines.append(f"cost       {expected}{before}")
    return lines


def _refused(found: Survey) -> list[str]:
    """Each run that is left out as a whole, on a line of its own, and the reason on the next."""
    lines = []
    for path, reason in found.refused.items():
        lines += [f"left out   {clean_line(str(path))}", f"           {clean_line(reason, 300)}"]
    return lines


def _expected(cost_usd: float | None) -> str:
    if cost_usd is None:
        return "unknown: no price is known"
    return f"about {money(cost_usd)}" if cost_usd else "nothing: the model is free"


def _left_out(reasons: Counter[str]) -> str:
    if not reasons:
        return ""
    told = ", ".join(f"{number} {clean_line(reason, 80)}" for reason, number in reasons.most_common(_ERRORS))
    return f", {reasons.total()} left out ({told})"


def summary_lines(
    flags: CreditFlags, summary: CreditSummary, found: Survey, places: list[str], *, capped: bool
) -> list[str]:
    """What the directories hold now."""
    without = f", {summary.without_rise} of them without a rise" if summary.without_rise else ""
    lines = [
        f"resolved   {summary.resolved}, trained on whole",
        f"annotated  {summary.annotated}{without}",
    ]
    if summary.failed:
        lines.append(f"failed     {summary.failed}, trained on not at all")
        lines += [
            f"           {number} x {clean_line(error, 160)}"
            for error, number in list(summary.errors.items())[:_ERRORS]
        ]
    if found.refused:
        lines.append(f"left out   {len(found.refused)} of the runs, as said above")
    if found.left_out:
        lines.append(f"left out   {found.left_out.total()}, without a credit")
    if summary.median_length is not None:
        lines.append(f"segments   {summary.segments}, median length {summary.median_length:g} answers")
    if summary.share is not None:
        lines.append(
            f"kept       {summary.kept} of {summary.turns} answers ({summary.share:.0%}) of the annotated"
        )
    if summary.rollouts:
        invalid = f", {summary.invalid} of them invalid" if summary.invalid else ""
        lines.append(f"measured   with {summary.rollouts} rollouts{invalid}")
    lines.append(f"cost       {money(summary.cost_usd)}")
    if capped:
        lines.append("stopped    at --max-cost; a higher one goes on")
    lines += [f"credits    {clean_line(place)}" for place in places[:_ERRORS]]
    if len(places) > _ERRORS:
        lines.append(f"           and {len(places) - _ERRORS} more, one in each cell")
    credit = flags.name if flags.out is None else str(flags.out)
    return [*lines, f"next       orchard data mix, with `credit: {clean_line(credit)}` at this source"]
