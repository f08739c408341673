"""`orchard data stats`: what rows add up to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchard_core.datasets.stats import DatasetStats, GroupStats


def stats(
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="PATH", help="Runs, matrices, datasets or files.", show_default=False),
    ],
    by: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAMES",
            help="One table by split, source, label, harness, model, taskset, outcome or credit; several "
            "with commas cross. Repeatable.  [default: those of split, harness, model, taskset and outcome "
            "in which rows differ]",
            show_default=False,
        ),
    ] = None,
    threshold: Annotated[float, typer.Option(help="A reward of at least this is resolved.")] = 1.0,
    format: Annotated[  # noqa: A002 - what users write
        str | None, typer.Option(help="What PATH is, where it is not recognised.", show_default=False)
    ] = None,
    threads: Annotated[
        str, typer.Option(metavar="LABELS", help="Of runs: which conversations, out of main, fork and side.")
    ] = "main,fork",
    plain: Annotated[bool, typer.Option("--plain", help="Lines instead of a live display.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Count rows, tasks, turns and tokens, and how much of them is trained.

    Quantiles are of rows, and to three digits. Resolved are rollouts, by their main conversation.
    """
    from itertools import chain

    from orchard_core.cli.data.chosen import labels_of
    from orchard_core.cli.display.rows_view import shown_rows
    from orchard_core.cli.output import print_json
    from orchard_core.cli.report import check_threshold
    from orchard_core.datasets.reading import find_source
    from orchard_core.datasets.stats import build_stats
    from orchard_core.datasets.stats_read import measured

    check_threshold(threshold)
    groupings = _groupings(by or ())
    labels = labels_of(threads)
    sources = [find_source(path, format=format) for path in paths]
    rows = chain.from_iterable(measured(source, threads=labels) for source in sources)
    with shown_rows("stats", rows, plain=plain) as counted:
        told = build_stats(counted, by=groupings, threshold=threshold)
    if as_json:
        print_json(told.model_dump(mode="json"))
    else:
        _print(told, groupings, whole=bool(by))


def _groupings(by: Sequence[str]) -> Sequence[Sequence[str]]:
    from orchard_core.datasets.stats import DEFAULT_BY, DIMENSIONS

    groupings = [[name.strip() for name in names.split(",")] for names in by]
    for name in (name for names in groupings for name in names):
        if name not in DIMENSIONS:
            raise typer.BadParameter(f"{name!r} is none of: {', '.join(DIMENSIONS)}", param_hint="--by")
    return groupings or DEFAULT_BY


_HEAD = (
    "ROWS",
    "TASKS",
    "RESOLVED",
    "TURNS 50/90/MAX",
    "TOKENS 50/90/MAX",
    "TRAINED TURNS",
    "TRAINED TOKENS",
    "CREDIT",
)
_SPARE = ("TRAINED TOKENS", "CREDIT")
"""Columns that are left out where no row has any."""


def _print(told: DatasetStats, groupings: Sequence[Sequence[str]], *, whole: bool) -> None:
    """The tables; unless `whole`, without those of one line, which says what the first table says."""
    from itertools import compress

    from orchard_core.cli.output import out, print_table
    from orchard_core.evals.clean import clean_line

    total = zip(_HEAD, _cells(told.total), strict=True)
    kept = [cell != "-" or name not in _SPARE for name, cell in total]

    def show(head: Sequence[str], rows: Sequence[tuple[Sequence[str], GroupStats]]) -> None:
        cells = [(*first, *compress(_cells(group), kept)) for first, group in rows]
        print_table((*head, *compress(_HEAD, kept)), cells)

    show(("ALL",), [(("rows",), told.total)])
    for names, groups in zip(groupings, told.groups, strict=True):
        if len(groups) < 2 and not whole:
            continue
        out()
        head = tuple("TASK SET" if name == "taskset" else name.upper() for name in names)
        named = [[clean_line(value, 60) or "-" for value in group.by.values()] for group in groups]
        show(head, list(zip(named, groups, strict=True)))
    if told.total.exact < told.total.rows:
        out()
        out(f"tokens of {told.total.rows - told.total.exact:,} rows are estimated by the size of their texts")


def _cells(group: GroupStats) -> tuple[str, ...]:
    from orchard_core.evals.clean import clean_line

    credit = ", ".join(f"{clean_line(name, 30)} {count:,}" for name, count in group.credit.items() if name)
    return (
        f"{group.rows:,}",
        f"{group.tasks:,}",
        f"{_share(group.resolved, group.rollouts)} of {group.rollouts:,}",
        f"{group.turns.p50:,.0f}/{group.turns.p90:,.0f}/{group.turns.max:,.0f}",
        f"{group.tokens.p50:,.0f}/{group.tokens.p90:,.0f}/{group.tokens.max:,.0f}",
        f"{_share(group.trained_turns, group.sum_turns)} of {group.sum_turns:,}",
        f"{_share(group.trained_tokens, group.recorded)} of {group.recorded:,}" if group.recorded else "-",
        credit or "-",
    )


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.0%}" if whole else "-"
