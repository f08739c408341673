"""`orchard data mix`: several sources become one dataset."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

_WHAT, _LEFT_OUT, _SHAPE, _HOW = "What is mixed", "What is left out", "Shape of the dataset", "How it runs"


def mix(  # noqa: PLR0913, PLR0917 - Typer makes one option of each parameter
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="RECIPE.yaml|PATH...",
            help="A YAML recipe; or runs, matrices, datasets and files of any known format.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The dataset's directory.", show_default=False)
    ] = None,
    seed: Annotated[int | None, typer.Option(help="What is drawn, and in which order.")] = None,
    weight: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=NUMBER", help="A source's part of the mix. Repeatable.", rich_help_panel=_WHAT
        ),
    ] = None,
    total: Annotated[
        int | None, typer.Option(min=1, help="Rows of all splits together.", rich_help_panel=_WHAT)
    ] = None,
    exhausted: Annotated[
        str | None,
        typer.Option(
            metavar="first_exhausted|all_exhausted|all_exhausted_without_replacement",
            help="When a source has fewer rows than its share: stop, repeat, or go on without it.",
            rich_help_panel=_WHAT,
        ),
    ] = None,
    stratify: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FIELD",
            help="Equal shares of harness, model, taskset, outcome or source. Repeatable.",
            rich_help_panel=_WHAT,
        ),
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option(min=1, help="Rows with more tokens.", rich_help_panel=_LEFT_OUT)
    ] = None,
    near_duplicates: Annotated[
        float | None,
        typer.Option(
            min=0, max=1, metavar="SIMILARITY", help="Later rows of a task that do nearly the same.",
            rich_help_panel=_LEFT_OUT,
        ),
    ] = None,
    leaks_against: Annotated[
        list[str] | None,
        typer.Option(
            metavar="BENCHMARK", help="Rows of tasks that stand in a benchmark. Repeatable.",
            rich_help_panel=_LEFT_OUT,
        ),
    ] = None,
    skip_bad_rows: Annotated[
        bool, typer.Option("--skip-bad-rows", help="Rows that cannot be read, counted.",
                           rich_help_panel=_LEFT_OUT)
    ] = False,
    split: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=SHARE", help="A split, by task; the first is trained on. Repeatable.",
            rich_help_panel=_SHAPE,
        ),
    ] = None,
    shard_rows: Annotated[
        int | None, typer.Option(min=1, help="Rows of a file.", rich_help_panel=_SHAPE)
    ] = None,
    set_field: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="FIELD=VALUE", help="Any field of a recipe, such as filters.unscored=true.",
            rich_help_panel=_SHAPE,
        ),
    ] = None,
    workers: Annotated[
        int, typer.Option(min=0, help="Processes; 0: as many as cores.", rich_help_panel=_HOW)
    ] = 0,
    print_config: Annotated[
        bool, typer.Option("--print-config", help="Print the whole recipe and exit.", rich_help_panel=_HOW)
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be kept and dropped, and why.",
                           rich_help_panel=_HOW)
    ] = False,
    plain: Annotated[
        bool, typer.Option("--plain", help="Progress as plain lines.", rich_help_panel=_HOW)
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.", rich_help_panel=_HOW)] = False,
) -> None:  # fmt: skip
    """Mix sources into one dataset: filtered, split by task, in Parquet files with a manifest.

    The same recipe and seed give the same files. Stopped or killed, the same command goes on.
    """
    from orchard_core.cli.data.mix_launch import act
    from orchard_core.cli.data.mix_recipe import MixFlags, resolved

    flags = MixFlags(
        weight=weight, split=split, stratify=stratify, leaks_against=leaks_against, set_field=set_field,
        skip_bad_rows=skip_bad_rows, near_duplicates=near_duplicates,
        plain={
            "seed": seed, "rows.total": total, "rows.exhausted": exhausted,
            "filters.max_tokens": max_tokens, "shards.rows": shard_rows,
        },
    )  # fmt: skip
    recipe, text = resolved(sources, flags)
    act(
        recipe, text, out, workers=workers, print_config=print_config, dry_run=dry_run, plain=plain,
        as_json=as_json,
    )  # fmt: skip
