"""`orchard runs diff` as lines, readable at 80 columns."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap

from orchard_core.cli.output import table
from orchard_core.evals.clean import clean_line
from orchard_core.evals.compare import RunComparison
from orchard_core.evals.diff import RunDiff, TaskChange
from orchard_core.evals.figures import p_value

_SHOWN = 20
_NAMED = 8


def diff_lines(diff: RunDiff, *, width: int) -> list[str]:
    """What differs: results first, then what may be the reason."""
    return [
        f"A  {clean_line(diff.comparison.left)}",
        f"B  {clean_line(diff.comparison.right)}",
        "",
        *_result(diff, width),
        *_tasks("B is worse at", diff.worse, width),
        *_tasks("B is better at", diff.better, width),
        *_causes(diff.comparison, width),
        "",
        *wrap(f"{diff.method}.", width - 1),
    ]


def _result(diff: RunDiff, width: int) -> list[str]:
    found = diff.difference
    if found is None:
        return ["The runs have no task in common."]
    text = f"pass rate: B less A is {100 * found.value:+.1f} points"
    if found.low is not None and found.high is not None:
        text += f" [{100 * found.low:+.1f}, {100 * found.high:+.1f}]"
    p = "" if diff.p_value is None else f", p = {p_value(diff.p_value)}"
    same = diff.tasks - len(diff.better) - len(diff.worse)
    counts = f"{len(diff.better)} better, {len(diff.worse)} worse, {same} the same"
    return wrap(f"{text}{p}, over {diff.tasks} tasks: {counts}.", width - 1)


def _tasks(title: str, changes: Sequence[TaskChange], width: int) -> list[str]:
    if not changes:
        return []
    rows = [
        (
            clean_line(item.task),
            f"{item.left_passed}/{item.left_planned}",
            f"{item.right_passed}/{item.right_planned}",
            p_value(item.p_value),
            p_value(item.p_adjusted),
        )
        for item in changes[:_SHOWN]
    ]
    more = [f"and {len(changes) - _SHOWN} more (--json lists all)"] if len(changes) > _SHOWN else []
    return ["", *table((title, "A", "B", "P", "P ADJ"), rows, width=width), *more]


def _causes(found: RunComparison, width: int) -> list[str]:
    lines: list[str] = []
    if found.config:
        rows = [(clean_line(item.field), _value(item.left), _value(item.right)) for item in found.config]
        lines += ["", *table(("CONFIGURATION", "A", "B"), rows, width=width)]
    notes = [
        ("tasks only in A", found.only_left),
        ("tasks only in B", found.only_right),
        ("tasks whose content differs", found.changed_tasks),
        ("tasks whose prompt differs", found.changed_prompts),
    ]
    said = [f"{len(tasks)} {what}: {_named(tasks)}" for what, tasks in notes if tasks]
    if found.changed_seeds:
        said.append(f"{found.changed_seeds} attempts with another seed")
    if not lines and not said:
        said = ["Nothing that was recorded of their configuration, tasks, prompts and seeds differs."]
    return [
        *lines,
        "",
        *(
            line
            for text in said
            for line in wrap(text, width - 1, subsequent_indent="  ", break_on_hyphens=False)
        ),
    ]


def _named(tasks: Sequence[str]) -> str:
    more = f" and {len(tasks) - _NAMED} more" if len(tasks) > _NAMED else ""
    return ", ".join(clean_line(task) for task in tasks[:_NAMED]) + more


def _value(value: object) -> str:
    return "-" if value is None else clean_line(str(value), 120)
