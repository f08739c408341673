"""`orchard data mix`: several sources become one dataset."""

from __future__ import annotations

from orchard_core.cli.data import mix_flags as flag


def mix(  # noqa: PLR0913, PLR0917 - Typer makes one option of each parameter
    sources: flag.Sources,
    out: flag.Out = None,
    seed: flag.Seed = None,
    weight: flag.Weight = None,
    total: flag.Total = None,
    exhausted: flag.Exhausted = None,
    stratify: flag.Stratify = None,
    max_tokens: flag.MaxTokens = None,
    near_duplicates: flag.NearDuplicates = None,
    leaks_against: flag.LeaksAgainst = None,
    skip_bad_rows: flag.SkipBadRows = False,
    split: flag.Split = None,
    shard_rows: flag.ShardRows = None,
    set_field: flag.SetField = None,
    workers: flag.Workers = 0,
    print_config: flag.PrintConfig = False,
    dry_run: flag.DryRun = False,
    plain: flag.Plain = False,
    as_json: flag.AsJson = False,
) -> None:
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
