"""A mix as a YAML file."""

from __future__ import annotations

from pathlib import Path

from orchard_core.datasets.mix.recipe import MixRecipe
from orchard_core.plugins.recipe_file import checked, recipe_fields

COMMAND = "orchard data mix"
"""What runs such a recipe."""


def read_mix_recipe(path: str | Path) -> MixRecipe:
    """The recipe in a YAML file, as `orchard data mix` reads it; the paths in it are relative to the working
    directory. Raises ConfigError that names the file and each wrong field, with the closest right name."""
    path = Path(path)
    return checked(MixRecipe, recipe_fields(path, MixRecipe), where=f"recipe {path}", command=COMMAND)
