"""The flags of `orchard data credit`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from orchard_core.datasets.credit.rules import CreditRules

_JUDGE, _BRANCH = "Estimator judge", "Estimator branch"
_CURVE, _HOW, _OUTPUT = "Curve and segments", "How to work", "Output"

Source = Annotated[
    Path | None,
    typer.Argument(
        metavar="RUN|MATRIX|DATASET",
        help="A run, a matrix (all its cells), a dataset, or a file of a known format.",
        show_default=False,
    ),
]
Estimator = Annotated[
    str, typer.Option(help="judge: a model values key steps; branch: values are measured by going on.")
]
Judge = Annotated[
    str | None,
    typer.Option(
        metavar="MODEL|self",
        help="The model that judges, such as openai:NAME; self: each trajectory's own.",
        rich_help_panel=_JUDGE,
    ),
]
BaseUrl = Annotated[
    str | None,
    typer.Option(help="Address of the judge's server, ending in /v1.", rich_help_panel=_JUDGE),
]
JudgeOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=VALUE", help="An option of the judge's model. Repeatable.", rich_help_panel=_JUDGE
    ),
]
Param = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=VALUE",
        help="A member of the request, such as temperature=0. Repeatable.",
        rich_help_panel=_JUDGE,
    ),
]
ContextTokens = Annotated[
    int,
    typer.Option(
        min=1000, help="Longest prompt, as estimated; long texts are shortened.", rich_help_panel=_JUDGE
    ),
]
Template = Annotated[int, typer.Option(min=1, help="Number of the judge's prompt.", rich_help_panel=_JUDGE)]
ShowPrompt = Annotated[
    bool, typer.Option("--show-prompt", help="Print the judge's prompt and exit.", rich_help_panel=_JUDGE)
]
Option = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=VALUE", help="An option of it. Repeatable.", rich_help_panel=_BRANCH),
]
MaxRollouts = Annotated[
    int | None,
    typer.Option(min=2, help="Continuations of one trajectory at most.", rich_help_panel=_BRANCH),
]
Epsilon = Annotated[
    float,
    typer.Option(min=0.0, max=1.0, help="Least credit of an answer within a rise.", rich_help_panel=_CURVE),
]
Interpolation = Annotated[
    str, typer.Option(help="Between estimated turns: linear or step.", rich_help_panel=_CURVE)
]
End = Annotated[
    str,
    typer.Option(help="Value after the last answer: outcome (0) or estimate.", rich_help_panel=_CURVE),
]
Merge = Annotated[str, typer.Option(help="Merge rule: none, gap:N or context:N.", rich_help_panel=_CURVE)]
Reuse = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="Ask nobody: the values in RUN/credit/NAME, under these rules.",
        show_default=False,
        rich_help_panel=_CURVE,
    ),
]
Threshold = Annotated[
    float, typer.Option(help="A score of at least this has passed.", rich_help_panel=_CURVE)
]
Concurrency = Annotated[int, typer.Option(min=1, help="Rollouts at once.", rich_help_panel=_HOW)]
MaxCost = Annotated[
    float | None,
    typer.Option(
        min=0.0, help="US dollars at most, earlier starts included; no question.", rich_help_panel=_HOW
    ),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Start without a question.", rich_help_panel=_HOW)]
RetryFailed = Annotated[
    bool,
    typer.Option("--retry-failed", help="Also those whose credit is an error.", rich_help_panel=_HOW),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what it would take.", rich_help_panel=_HOW)]
Name = Annotated[
    str | None,
    typer.Option(help="Kept in RUN/credit/NAME [default: the estimator].", rich_help_panel=_OUTPUT),
]
Out = Annotated[
    Path | None,
    typer.Option(help="Directory of the credits of a dataset or file.", rich_help_panel=_OUTPUT),
]
Plain = Annotated[
    bool, typer.Option("--plain", help="Plain lines instead of a live screen.", rich_help_panel=_OUTPUT)
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.", rich_help_panel=_OUTPUT)]


@dataclass(frozen=True, slots=True, kw_only=True)
class CreditFlags:
    """What was asked for."""

    path: Path
    """The run, matrix, dataset or file."""
    estimator: str
    """`judge` or `branch`."""
    name: str
    """Name of the directory within a run."""
    out: Path | None
    """The directory, for what is no run."""
    rules: CreditRules
    """Curve, segments, merging."""
    threshold: float
    """A score of at least this has passed."""
    reuse: str
    """Name of earlier credits whose values are taken; empty: none."""
    judge: str
    """The judge's model; empty: none was named."""
    judge_options: Mapping[str, Any]
    """Its options."""
    judge_params: Mapping[str, Any]
    """Members of its requests."""
    context_tokens: int
    """Its longest prompt."""
    template: int
    """Its prompt's number."""
    options: Mapping[str, Any]
    """Options of the estimator `branch`."""
    concurrency: int
    """Rollouts at once."""
    max_cost: float | None
    """US dollars, earlier starts included."""
    retry_failed: bool
    """Also those with an error."""
    agreed: bool
    """--yes"""
    dry_run: bool
    """Only say what it would take."""
    plain: bool
    """Plain lines instead of a live screen."""
    as_json: bool
    """Print JSON."""
