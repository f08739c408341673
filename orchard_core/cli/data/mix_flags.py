"""The flags of `orchard data mix`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

_WHAT, _LEFT_OUT, _SHAPE, _HOW = "What is mixed", "What is left out", "Shape of the dataset", "How it runs"

Sources = Annotated[
    list[str],
    typer.Argument(
        metavar="RECIPE.yaml|PATH",
        help="A YAML recipe; or runs, matrices, datasets and files of any known format.",
        show_default=False,
    ),
]
Out = Annotated[Path | None, typer.Option(metavar="DIR", help="The dataset's directory.", show_default=False)]
Seed = Annotated[int | None, typer.Option(help="What is drawn, and in which order.")]
Weight = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=NUMBER", help="A source's part of the mix. Repeatable.", rich_help_panel=_WHAT
    ),
]
Total = Annotated[int | None, typer.Option(min=1, help="Rows of all splits together.", rich_help_panel=_WHAT)]
Exhausted = Annotated[
    str | None,
    typer.Option(
        metavar="first_exhausted|all_exhausted|all_exhausted_without_replacement",
        help="When a source has fewer rows than its share: stop, repeat, or go on without it.",
        rich_help_panel=_WHAT,
    ),
]
Stratify = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FIELD",
        help="Equal shares of harness, model, taskset, outcome or source. Repeatable.",
        rich_help_panel=_WHAT,
    ),
]
MaxTokens = Annotated[
    int | None, typer.Option(min=1, help="Rows with more tokens.", rich_help_panel=_LEFT_OUT)
]
NearDuplicates = Annotated[
    float | None,
    typer.Option(
        min=0,
        max=1,
        metavar="SIMILARITY",
        help="Later rows of a task that do nearly the same.",
        rich_help_panel=_LEFT_OUT,
    ),
]
LeaksAgainst = Annotated[
    list[str] | None,
    typer.Option(
        metavar="BENCHMARK",
        help="Rows of tasks that stand in a benchmark. Repeatable.",
        rich_help_panel=_LEFT_OUT,
    ),
]
SkipBadRows = Annotated[
    bool,
    typer.Option("--skip-bad-rows", help="Rows that cannot be read, counted.", rich_help_panel=_LEFT_OUT),
]
Split = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=SHARE",
        help="A split, by task; the first is trained on. Repeatable.",
        rich_help_panel=_SHAPE,
    ),
]
ShardRows = Annotated[int | None, typer.Option(min=1, help="Rows of a file.", rich_help_panel=_SHAPE)]
SetField = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="FIELD=VALUE",
        help="Any field of a recipe, such as filters.unscored=true.",
        rich_help_panel=_SHAPE,
    ),
]
Workers = Annotated[
    int, typer.Option(min=0, help="Processes; 0: one a core, at most 4.", rich_help_panel=_HOW)
]
PrintConfig = Annotated[
    bool, typer.Option("--print-config", help="Print the whole recipe and exit.", rich_help_panel=_HOW)
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Say what would be kept and dropped, and why.", rich_help_panel=_HOW)
]
Plain = Annotated[bool, typer.Option("--plain", help="Progress as plain lines.", rich_help_panel=_HOW)]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.", rich_help_panel=_HOW)]
