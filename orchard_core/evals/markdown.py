"""Reports for people. Every string that a task, a model or a plugin may have chosen is treated as hostile."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence

from pydantic import JsonValue

from orchard_core.evals.attempts import Rate
from orchard_core.evals.compare import RunComparison
from orchard_core.evals.report import Report, Row
from orchard_core.evals.statistics import Estimate
from orchard_core.rollout.store.entry import Spent

_LONGEST = 200
_SPECIAL = frozenset("\\`*_{}[]()<>#+-.!|~^=:@&$/\"'")
_PLAIN = frozenset("-._ /+:=")


def escape(text: str) -> str:
    """Text that Markdown shows as it is: no markup, link, mention, HTML, control or bidi character works."""
    kept = "".join(_shown(character) for character in text[:_LONGEST])
    if len(text) > _LONGEST:
        kept += "…"
    # A word that could be a link, a mention or an entity is only harmless character by character.
    return "".join(f"&#{ord(c)};" if c in _SPECIAL and not _harmless(c, kept) else c for c in kept)


def _harmless(character: str, text: str) -> bool:
    return character in _PLAIN and "://" not in text and "www." not in text.lower() and text[:1].isalnum()


def _shown(character: str) -> str:
    kind = unicodedata.category(character)
    if kind in {"Zs", "Zl", "Zp"} or character in "\t\n\r":
        return " "
    return "�" if kind in {"Cc", "Cf", "Cs", "Co", "Cn"} else character


def to_markdown(reports: Sequence[Report], comparisons: Sequence[RunComparison] = ()) -> str:
    """One document about one or more runs; `comparisons` says how later runs differ from the first."""
    parts = [_one(report) for report in reports]
    parts += [_comparison(comparison) for comparison in comparisons]
    return "\n".join(parts)


def _one(report: Report) -> str:
    config = report.config
    lines = [
        f"# {escape(config.taskset)}: {escape(config.harness)} with {escape(config.model)}",
        "",
        f"Run `{_code(report.run)}`. {_counts(report)}",
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
    return [_line(head), _line(["---", *["---:"] * (len(head) - 1)]), *map(_line, rows)]


def _cells(row: Row) -> list[str]:
    spent = row.spending
    return [
        escape(row.name),
        str(row.tasks),
        f"{row.passed}/{row.planned} ({row.passed}/{row.valid})",
        _estimate(row.pass_at_1.planned),
        _estimate(row.pass_at_1.valid),
        _number(row.mean_score, ".3f"),
        _number(spent.turns_mean, ".1f"),
        f"{spent.usage.total:,}",
        _dollars(spent.cost_usd),
        _number(spent.wall_clock_mean_s, ".1f"),
    ]


def _ks(row: Row) -> list[str]:
    if not row.pass_at:
        return []
    lines = [
        _line(["k", "pass@k planned", "pass@k valid", "pass^k planned", "pass^k valid"]),
        _line(["---:"] * 5),
    ]
    for at, hat in zip(row.pass_at, row.pass_hat, strict=True):
        lines.append(_line([str(at.k), *_both(at.rate), *_both(hat.rate)]))
    return ["## Several attempts", "", *lines, ""]


def _outcomes(report: Report) -> list[str]:
    lines = [_line(["outcome", "whose doing", "rollouts"]), _line(["---", "---", "---:"])]
    lines += [
        _line([item.outcome.value, item.attribution.value, str(item.count)]) for item in report.outcomes
    ]
    if report.errors:
        listed = ", ".join(f"{escape(name)} {count}" for name, count in report.errors.items())
        lines += ["", f"What decided them: {listed}."]
    return ["## Outcomes", "", *lines, ""]


def _unscored(report: Report) -> list[str]:
    lines: list[str] = []
    if report.unscored:
        lines += [f"## Without a score: {report.unscored_count}", ""]
        lines += [_line(["rollout", "task", "outcome", "whose doing", "error", "can be graded again"])]
        lines += [_line(["---"] * 6)]
        for item in report.unscored:
            again = "yes" if item.regradable else "no"
            names = [
                f"`{_code(item.rollout)}`",
                escape(item.task),
                item.outcome.value,
                item.attribution.value,
            ]
            lines.append(_line([*names, escape(item.error), again]))
        if report.unscored_count > len(report.unscored):
            lines += ["", f"and {report.unscored_count - len(report.unscored)} more."]
        lines.append("")
    if report.dropped:
        lines += ["## Given up by the sampler", ""]
        lines += [f"- task {escape(task)}: {escape(reason)}" for task, reason in report.dropped.items()]
        lines.append("")
    return lines


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
    return (
        f"{spent.calls:,} model calls; tokens: {usage.input:,} input, {usage.cache_read:,} read from cache, "
        f"{usage.cache_write:,} written to cache, {usage.output:,} output; cost {_dollars(spent.cost_usd)}"
    )


def _provenance(report: Report) -> list[str]:
    config = report.config
    facts: list[tuple[str, str]] = [
        ("harness", f"{config.harness} {config.harness_version}"),
        ("sandbox", config.sandbox),
        ("limits", _set_fields(config.limits.model_dump(exclude_none=True))),
        ("attempts, seed", f"{config.attempts}, {config.seed}"),
        ("tasks, prompts, configuration", f"{config.tasks_digest} {config.prompts_digest} {config.digest}"),
        ("different first requests", str(report.prompt_digests)),
        ("versions", ", ".join(f"{name} {version}" for name, version in config.versions.items())),
    ]
    return ["## Provenance", "", *(f"- {name}: {escape(value) or 'none'}" for name, value in facts), ""]


def _comparison(comparison: RunComparison) -> str:
    lines = [f"# `{_code(comparison.right)}` against `{_code(comparison.left)}`", ""]
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


def _both(rate: Rate) -> list[str]:
    return [_estimate(rate.planned), _estimate(rate.valid)]


def _estimate(estimate: Estimate | None) -> str:
    if estimate is None:
        return "-"
    text = f"{estimate.value:.1%}"
    if estimate.low is None or estimate.high is None:
        return text
    return f"{text} [{estimate.low:.1%}, {estimate.high:.1%}]"


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def _dollars(value: float | None) -> str:
    return "unknown" if value is None else f"${value:,.4f}" if value else "$0"


def _value(value: JsonValue) -> str:
    return "absent" if value is None else escape(str(value))


def _set_fields(fields: dict[str, object]) -> str:
    return ", ".join(f"{name} {value}" for name, value in fields.items())


def _code(text: str) -> str:
    """Text for a code span: what could end the span, or the table's cell, is replaced."""
    return "".join(_shown(character) for character in text).replace("`", "'").replace("|", "/")


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
