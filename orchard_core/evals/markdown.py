"""Reports of runs for people, as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import JsonValue

from orchard_core.evals.compare import RunComparison
from orchard_core.evals.markdown_words import both, code, dollars, escape, estimate, number, table
from orchard_core.evals.report import Report, Row, Unscored
from orchard_core.rollout.store.entry import Spent

_WHOLE = 10_000
"""Characters of a line of provenance; versions are never cut short."""


def to_markdown(reports: Sequence[Report], comparisons: Sequence[RunComparison] = ()) -> str:
    """One document about one or more runs; `comparisons` says how later runs differ from the first."""
    parts = [_one(report) for report in reports]
    parts += [_comparison(comparison) for comparison in comparisons]
    return "\n".join(parts)


def _one(report: Report) -> str:
    config = report.config
    lines = [
        f"# {escape(config.taskset)}: {escape(config.harness_text)} with {escape(config.model_text)}",
        "",
        f"Run `{code(report.run)}`. {_counts(report)}",
        "",
        *_table(report),
        "",
        _reading(report),
        "",
        *_ks(report.total),
        *_outcomes(report),
        *_unscored(report),
        *_left_out(report),
        *_spending(report.total),
        *_provenance(report),
    ]
    return "\n".join(lines) + "\n"


def _reading(report: Report) -> str:
    return (
        f'An attempt has passed with a score of at least {report.threshold:g}. "Planned" counts every '
        'planned attempt, and what failed or is missing has not passed; "valid" leaves out what was not the '
        f"doing of the agent. {report.method}; a dash: not defined with so few attempts or tasks."
    )


def _counts(report: Report) -> str:
    total = report.total
    text = (
        f"{total.planned} planned, {total.finished} finished, {total.valid} valid, {total.scored} scored, "
        f"{total.passed} passed."
    )
    notes = [
        (report.missing, "not finished yet"),
        (report.timed_out, "ran out of time"),
        (report.retried, "started more than once"),
        (report.same_sandbox, "judged in the agent's own sandbox"),
        (report.image_fallback, "run on the host's files instead of their image"),
    ]
    extra = ", ".join(f"{count} {what}" for count, what in notes if count)
    return f"{text} {extra[0].upper() + extra[1:]}." if extra else text


def _table(report: Report) -> list[str]:
    head = (
        "tasks of",
        "tasks",
        "attempts",
        "pass@1 planned",
        "pass@1 valid",
        "mean score",
        "turns",
        "tokens",
        "cost",
        "s",
    )
    rows = [_cells(row) for row in (report.total, *report.tags)]
    return table(head, rows, numbers=len(head) - 1)


def _cells(row: Row) -> list[str]:
    spent = row.spending
    return [
        escape(row.name),
        str(row.tasks),
        f"{row.passed}/{row.planned} ({row.passed}/{row.valid})",
        estimate(row.pass_at_1.planned),
        estimate(row.pass_at_1.valid),
        number(row.mean_score, ".3f"),
        number(spent.turns_mean, ".1f"),
        f"{spent.usage.total:,}",
        dollars(spent.cost_usd),
        number(spent.wall_clock_mean_s, ".1f"),
    ]


def _ks(row: Row) -> list[str]:
    if not row.pass_at:
        return []
    head = ["k", "pass@k planned", "pass@k valid", "pass^k planned", "pass^k valid"]
    rows = [
        [str(at.k), *both(at.rate), *both(hat.rate)]
        for at, hat in zip(row.pass_at, row.pass_hat, strict=True)
    ]
    lines = table(head, rows, numbers=5)
    return ["## Several attempts", "", *lines, ""]


def _outcomes(report: Report) -> list[str]:
    rows = [[item.outcome.value, item.attribution.value, str(item.count)] for item in report.outcomes]
    lines = table(["outcome", "whose doing", "rollouts"], rows, numbers=1)
    if report.errors:
        listed = ", ".join(f"{escape(name)} {count}" for name, count in report.errors.items())
        lines += ["", f"What decided them: {listed}."]
    return ["## Outcomes", "", *lines, ""]


def _unscored(report: Report) -> list[str]:
    lines: list[str] = []
    if report.unscored:
        lines += [f"## Without a score: {report.unscored_count}", ""]
        head = ["rollout", "task", "outcome", "whose doing", "error", "can be graded again"]
        lines += table(head, map(_unscored_cells, report.unscored), numbers=0)
        if report.unscored_count > len(report.unscored):
            lines += ["", f"and {report.unscored_count - len(report.unscored)} more."]
        lines.append("")
    if report.dropped:
        lines += ["## Given up by the sampler", ""]
        lines += [f"- task {escape(task)}: {escape(reason)}" for task, reason in report.dropped.items()]
        lines.append("")
    return lines


def _unscored_cells(item: Unscored) -> list[str]:
    return [
        f"`{code(item.rollout)}`",
        escape(item.task),
        item.outcome.value,
        item.attribution.value,
        escape(item.error),
        "yes" if item.regradable else "no",
    ]


def _left_out(report: Report) -> list[str]:
    problems = report.config.problems
    if not problems:
        return []
    return ["## Left out or ignored by the task set", "", *(f"- {escape(line)}" for line in problems), ""]


def _spending(row: Row) -> list[str]:
    own, everything = row.spending, row.spending.spent
    lines = [f"{_used(everything)}; {own.wall_clock_s:,.1f} s from first start to last end."]
    if everything.calls > own.calls:
        finished = Spent(calls=own.calls, usage=own.usage, cost_usd=own.cost_usd)
        lines += [
            "",
            f"Of this the finished rollouts, without repeated and stopped tries: {_used(finished)}.",
        ]
    return ["## Spent", "", *lines, ""]


def _used(spent: Spent) -> str:
    usage = spent.usage
    again = f", sent again {spent.call_retries:,} times" if spent.call_retries else ""
    return (
        f"{spent.calls:,} model calls{again}; tokens: {usage.input:,} input, "
        f"{usage.cache_read:,} read from cache, {usage.cache_write:,} written to cache, "
        f"{usage.output:,} output; cost {dollars(spent.cost_usd)}"
    )


def _provenance(report: Report) -> list[str]:
    config = report.config
    facts: list[tuple[str, str]] = [
        ("harness", f"{config.harness_text} {config.harness_version}"),
        ("sandbox", config.sandbox),
        ("limits", _set_fields(config.limits.model_dump(exclude_none=True))),
        ("attempts, seed", f"{config.attempts}, {config.seed}"),
        ("tasks, prompts, configuration", f"{config.tasks_digest} {config.prompts_digest} {config.digest}"),
        ("different first requests", str(report.prompt_digests)),
        ("versions", ", ".join(f"{name} {version}" for name, version in config.versions.items())),
    ]
    lines = (f"- {name}: {escape(value, longest=_WHOLE) or 'none'}" for name, value in facts)
    return ["## Provenance", "", *lines, ""]


def _comparison(comparison: RunComparison) -> str:
    lines = [f"# `{code(comparison.right)}` against `{code(comparison.left)}`", ""]
    lines += [
        f"- {escape(item.field)}: {_value(item.left)} → {_value(item.right)}" for item in comparison.config
    ]
    groups = [
        ("tasks only in the first", comparison.only_left),
        ("tasks only in the second", comparison.only_right),
        ("tasks whose content changed", comparison.changed_tasks),
        ("tasks whose prompt changed", comparison.changed_prompts),
    ]
    for name, tasks in groups:
        if tasks:
            more = f" and {len(tasks) - 20} more" if len(tasks) > 20 else ""
            lines.append(f"- {len(tasks)} {name}: {', '.join(map(escape, tasks[:20]))}{more}")
    if comparison.changed_seeds:
        lines.append(f"- {comparison.changed_seeds} attempts with another seed")
    if len(lines) == 2:
        lines.append("Nothing that was recorded differs.")
    return "\n".join(lines) + "\n"


def _value(value: JsonValue) -> str:
    return "absent" if value is None else escape(str(value))


def _set_fields(fields: dict[str, object]) -> str:
    return ", ".join(f"{name} {value}" for name, value in fields.items())
