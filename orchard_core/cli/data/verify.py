"""`orchard data verify`: whether a dataset is what it says."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from orchard_core.datasets.verify import Fault, Verified


def verify(
    dataset: Annotated[
        Path, typer.Argument(metavar="DATASET", help="A dataset's directory.", show_default=False)
    ],
    deep: Annotated[
        bool,
        typer.Option(
            "--deep", help="Read every message and token id, too, and check how they hang together."
        ),
    ] = False,
    against: Annotated[
        list[str] | None,
        typer.Option(
            metavar="BENCHMARK",
            help="A task set, a dataset or a file whose tasks must not be in it. Repeatable.",
            show_default=False,
        ),
    ] = None,
    plain: Annotated[bool, typer.Option("--plain", help="Lines instead of a live display.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Check a dataset against its manifest, and list everything that is wrong.

    Hashes, columns and counts; ids that come twice; tasks, and nearly equal ones, that stand in two splits.
    Ends with 1 when something is wrong.
    """
    from collections import deque

    from orchard_core.cli.display.rows_view import shown_rows
    from orchard_core.cli.exits import Exit
    from orchard_core.cli.output import print_json
    from orchard_core.datasets.verify import Verifier

    leaks = None
    if against:
        from orchard_core.datasets.leaks.check import LeakCheck

        leaks = LeakCheck.against(*against)
    verifier = Verifier(dataset, deep=deep, leaks=leaks)
    with shown_rows(f"verify {dataset}", verifier.rows(), plain=plain) as counted:
        deque(counted, maxlen=0)
    report = verifier.report()
    if as_json:
        print_json({**report.model_dump(mode="json"), "sound": report.sound})
    else:
        _print(report)
    if not report.sound:
        raise typer.Exit(Exit.UNSOUND)


def _print(report: Verified) -> None:
    from orchard_core.cli.output import out, print_table
    from orchard_core.evals.clean import clean_line

    files = f"{report.shards:,} file{'' if report.shards == 1 else 's'}"
    looked = f"{report.rows:,} rows in {files}{' in depth' if report.deep else ''}"
    if report.sound:
        out(f"{looked}: nothing is wrong")
        return
    print_table(("FILE", "ROW", "FIELD", "WRONG"), [_cells(fault) for fault in report.faults])
    out()
    count = len(report.faults) + report.more
    more = f", of which {report.more:,} are not listed" if report.more else ""
    out(clean_line(f"{looked}: {count:,} fault{'' if count == 1 else 's'}{more}"))


def _cells(fault: Fault) -> tuple[str, ...]:
    from orchard_core.evals.clean import clean_line

    row = "-" if fault.row is None else str(fault.row)
    return clean_line(fault.file), row, clean_line(fault.field) or "-", clean_line(fault.message, 300)
