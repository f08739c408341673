"""`orchard report`: what runs say, as Markdown or JSON."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence


def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN", help="Run directories.", show_default=False)],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write to this file instead of stdout.")
    ] = None,
    threshold: Annotated[float, typer.Option(help="A score of at least this has passed.")] = 1.0,
    compare: Annotated[
        bool, typer.Option("--compare", help="Say how each later run differs from the first, and why.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of Markdown.")] = False,
) -> None:
    """Print a report of one or more runs.

    pass@1 and pass@k with confidence intervals, outcomes, turns, tokens, cost, time. It works while a run
    is going on.
    """
    import sys

    from orchard_core.cli.output import err

    text = render(runs, threshold=threshold, compared=compare, as_json=as_json)
    if output is None:
        sys.stdout.write(text)
    else:
        _write(output, text)
        err(f"wrote {output}")


def render(
    paths: Sequence[Path], *, threshold: float = 1.0, compared: bool = False, as_json: bool = False
) -> str:
    """The report. Raises RunNotFound."""
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


def _write(path: Path, text: str) -> None:
    from orchard_core.errors import ConfigError

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"the report cannot be written: {error}", hint="choose another --output") from error
