"""From a recipe to a dataset, or to what it would be."""

from __future__ import annotations

from pathlib import Path

import typer

from orchard_core.cli.data.mix_display import display
from orchard_core.cli.data.mix_words import dry_lines, made_lines, tables
from orchard_core.cli.output import err, out, print_json, print_table
from orchard_core.cli.recipe import to_yaml
from orchard_core.datasets.mix.recipe import MixRecipe
from orchard_core.datasets.mix.run import dry_mix, mix
from orchard_core.errors import ConfigError


def act(
    recipe: MixRecipe, text: str, root: Path | None, *, workers: int, print_config: bool, dry_run: bool,
    plain: bool, as_json: bool,
) -> None:  # fmt: skip
    """Do with the recipe what the flags say. Raises ConfigError without a place for the dataset."""
    if print_config:
        typer.echo(to_yaml(recipe), nl=False)
    elif dry_run:
        _dry(recipe, workers=workers, plain=plain, as_json=as_json)
    elif root is None:
        raise ConfigError("no directory to write to", hint="give --out DIR, or --dry-run")
    else:
        _make(recipe, text, root, workers=workers, plain=plain, as_json=as_json)


def _dry(recipe: MixRecipe, *, workers: int, plain: bool, as_json: bool) -> None:
    with display("looking", plain=plain) as watch:
        told = dry_mix(recipe, workers=workers, watch=watch)
    if as_json:
        print_json(told.model_dump(mode="json"))
        return
    for head, rows in tables(told.sources):
        print_table(head, rows)
        out()
    for line in dry_lines(told):
        out(line)


def _make(recipe: MixRecipe, text: str, root: Path, *, workers: int, plain: bool, as_json: bool) -> None:
    try:
        with display(f"mix {root}", plain=plain) as watch:
            manifest = mix(recipe, root, recipe_text=text, workers=workers, watch=watch)
    except KeyboardInterrupt:
        err("stopped; the same command goes on", bold=True)
        raise
    if as_json:
        print_json(manifest.model_dump(mode="json"))
        return
    for head, rows in tables(manifest.made.sources):
        print_table(head, rows)
        out()
    for line in made_lines(manifest, root):
        out(line)
