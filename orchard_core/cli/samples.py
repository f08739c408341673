"""`orchard samples`: how a rollout's calls hang together, and why each sampled token is trained or not."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from orchard_core.types.sample_report import CallPlace, SampleReport, ThreadPlace


def samples(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Run directory.", show_default=False)],
    rollout: Annotated[
        str,
        typer.Argument(
            metavar="ROLLOUT",
            help="Beginning of a rollout's id, or TASK or TASK#ATTEMPT.",
            show_default=False,
        ),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Show which call continues which, and which tokens are trained on.

    Of each sampled token that is not trained it says why. Works without token ids, too: messages alone then
    tell the threads.
    """
    from orchard_core.cli.output import print_json
    from orchard_core.cli.show import pick
    from orchard_core.gateway.sample_report import build_sample_report
    from orchard_core.rollout.store.run import open_run

    opened = open_run(run)
    report = build_sample_report(opened.load(pick(opened, rollout)).trajectory)
    if as_json:
        print_json(report.model_dump(mode="json"))
    else:
        _print(report)


_TEXTS = 6
"""Where the columns of texts begin."""


def _print(report: SampleReport) -> None:
    from orchard_core.cli.output import err, out, print_table

    threads = [_thread_cells(number, thread) for number, thread in enumerate(report.threads)]
    print_table(("THREAD", "KIND", "LABEL", "CALLS", "BESIDE"), threads)
    out()
    for line in _call_lines(report):
        out(line)
    out()
    if report.unusable:
        err(f"no training sample: {report.unusable}", fg="yellow")
    else:
        out(f"{report.trained} of {report.sampled} sampled tokens are trained")


def _thread_cells(number: int, thread: ThreadPlace) -> tuple[str, ...]:
    calls = " ".join(map(str, thread.calls))
    return str(number), thread.kind.value, thread.label.value, calls, _number(thread.beside)


def _call_lines(report: SampleReport) -> list[str]:
    """A table where it fits; else the three texts of a call below its numbers."""
    import sys
    from shutil import get_terminal_size

    from orchard_core.cli.output import cells, table

    head = ("CALL", "THREAD", "RELATION", "FOLLOWS", "BY", "TRAINED", "WHY", "ASKS", "SAYS")
    rows = [_call_cells(call) for call in report.calls]
    whole = table(head, rows, width=None)
    width = get_terminal_size().columns
    if not sys.stdout.isatty() or max(map(cells, whole)) < width:
        return whole
    first, *numbers = table(head[:_TEXTS], [row[:_TEXTS] for row in rows], width=None)
    lines = [first]
    for row, line in zip(rows, numbers, strict=True):
        told = zip(head[_TEXTS:], row[_TEXTS:], strict=True)
        lines += [line, *(f"      {name.lower():4}  {text}" for name, text in told if text)]
    return lines


def _call_cells(call: CallPlace) -> tuple[str, ...]:
    from orchard_core.evals.clean import clean_line

    return (
        str(call.call),
        _number(call.thread),
        call.relation.value,
        _number(call.follows),
        "tokens" if call.by_tokens else "messages",
        "-" if call.sampled is None else f"{call.trained}/{call.sampled}",
        clean_line(call.why),
        clean_line(call.asks),
        clean_line(call.says),
    )


def _number(value: int | None) -> str:
    return "-" if value is None else str(value)
