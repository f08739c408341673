"""`orchard report`: what runs and matrices say, as a page to look at, Markdown or JSON."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchard_core.evals.matrix_report import MatrixReport


class Format(StrEnum):
    """What is written."""

    MARKDOWN = "md"
    JSON = "json"
    HTML = "html"


def report(
    paths: Annotated[
        list[Path], typer.Argument(metavar="PATH", help="Run or matrix directories.", show_default=False)
    ],
    as_html: Annotated[
        bool,
        typer.Option(
            "--html", help="Write report.html, and report.json and report.md beside it, into the directory."
        ),
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Write to this file instead; a name that ends in .html, .json or .md says what.",
        ),
    ] = None,
    trajectories: Annotated[
        bool,
        typer.Option("--trajectories", help="With HTML: a page for each rollout, in a folder beside it."),
    ] = False,
    threshold: Annotated[float, typer.Option(help="A score of at least this has passed.")] = 1.0,
    compare: Annotated[
        bool, typer.Option("--compare", help="Say how each later run differs from the first, and why.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of Markdown.")] = False,
) -> None:
    """Report on runs and matrices, as Markdown, JSON or one HTML file.

    pass@1 and pass@k with confidence intervals, paired differences, outcomes, turns, tokens, cost, time. It
    works while a run is going on. The HTML needs no network and can be shared as it is.
    """
    check_threshold(threshold)
    form = _format(output, as_html=as_html, as_json=as_json)
    if form is Format.HTML:
        target = output or _beside(paths)
        _write_page(paths, target, threshold=threshold, trajectories=trajectories)
        return
    if trajectories:
        raise typer.BadParameter("goes with --html", param_hint="--trajectories")
    _emit(render(paths, threshold=threshold, compared=compare, as_json=form is Format.JSON), output)


def _emit(text: str, output: Path | None) -> None:
    import sys

    if output is None:
        sys.stdout.write(text)
        return
    from orchard_core.cli.output import err
    from orchard_core.evals.html.files import write_text

    write_text(output, text)
    err(f"wrote {output}")


def check_threshold(threshold: float) -> None:
    """Raises BadParameter for what no score can be held against."""
    import math

    if not math.isfinite(threshold):
        raise typer.BadParameter("is not a number", param_hint="--threshold")


def _format(output: Path | None, *, as_html: bool, as_json: bool) -> Format:
    if as_html and as_json:
        raise typer.BadParameter("--html writes JSON, too: leave --json out", param_hint="--html")
    if as_html:
        return Format.HTML
    suffix = output.suffix.lower() if output else ""
    if as_json or suffix == ".json":
        return Format.JSON
    return Format.HTML if suffix in {".html", ".htm"} else Format.MARKDOWN


def _beside(paths: Sequence[Path]) -> Path:
    """In the run or matrix itself; of several in the working directory."""
    return (paths[0] if len(paths) == 1 else Path()) / "report.html"


def _write_page(paths: Sequence[Path], target: Path, *, threshold: float, trajectories: bool) -> None:
    from orchard_core.cli.output import err
    from orchard_core.evals.html.files import check_target, write_html, write_text
    from orchard_core.evals.html.svg import INSTALL, can_draw

    if target.suffix.lower() not in {".html", ".htm"}:
        raise typer.BadParameter(f"{target} does not end in .html", param_hint="--output")
    for suffix in (".json", ".md"):
        check_target(target.with_suffix(suffix))
    found = matrix(paths, threshold=threshold)
    written = write_html(found, target, trajectories=trajectories)
    write_text(target.with_suffix(".json"), found.model_dump_json(indent=1) + "\n")
    write_text(target.with_suffix(".md"), _markdown(found))
    err(f"wrote {target}, and {target.stem}.json and {target.stem}.md beside it")
    if trajectories:
        err(f"wrote {written.pages} transcripts to {target.with_name(f'{target.stem}-rollouts')}")
    for message in written.unreadable:
        err(message, fg="yellow")
    if not can_draw():
        err(f"the charts are left out, their tables are there; for charts: {INSTALL}", fg="yellow")


def matrix(paths: Sequence[Path], *, threshold: float) -> MatrixReport:
    """All of them as one matrix. Raises RunNotFound."""
    from orchard_core.evals.join import join
    from orchard_core.evals.matrix import build_matrix

    return join([build_matrix(path, threshold=threshold) for path in paths])


def render(
    paths: Sequence[Path], *, threshold: float = 1.0, compared: bool = False, as_json: bool = False
) -> str:
    """Markdown or JSON: of runs, one after the other; of matrices, as one. Raises RunNotFound."""
    from orchard_core.rollout.matrix.plan import is_matrix

    if not any(map(is_matrix, paths)):
        return _runs(paths, threshold=threshold, compared=compared, as_json=as_json)
    if compared:
        raise typer.BadParameter("compares runs: name the cells' directories", param_hint="--compare")
    found = matrix(paths, threshold=threshold)
    return found.model_dump_json(indent=2) + "\n" if as_json else _markdown(found)


def _markdown(found: MatrixReport) -> str:
    """Of a single run its own report, which says more."""
    from orchard_core.evals.markdown import to_markdown
    from orchard_core.evals.matrix_markdown import matrix_markdown

    alone = len(found.cells) == 1 and not found.refused
    return to_markdown([found.cells[0].report]) if alone else matrix_markdown(found)


def _runs(paths: Sequence[Path], *, threshold: float, compared: bool, as_json: bool) -> str:
    import json

    from orchard_core.evals.compare import compare
    from orchard_core.evals.markdown import to_markdown
    from orchard_core.evals.report import build_report
    from orchard_core.rollout.store.run import open_run

    runs = [open_run(path) for path in paths]
    reports = [build_report(run, threshold=threshold) for run in runs]
    comparisons = [compare(runs[0], run) for run in runs[1:]] if compared else []
    if not as_json:
        return to_markdown(reports, comparisons)
    document = {
        "reports": [each.model_dump(mode="json") for each in reports],
        "comparisons": [each.model_dump(mode="json") for each in comparisons],
    }
    return json.dumps(document, indent=2) + "\n"
