"""A mix as a YAML file, as flags, or both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from orchard_core.cli.options import key_values
from orchard_core.cli.recipe import merged
from orchard_core.datasets.mix.recipe import MixRecipe
from orchard_core.datasets.mix.recipe_file import COMMAND
from orchard_core.datasets.mix.run import with_names
from orchard_core.errors import ConfigError
from orchard_core.plugins.recipe_file import checked, recipe_fields

_YAML = (".yaml", ".yml")


@dataclass(frozen=True, slots=True, kw_only=True)
class MixFlags:
    """What the command line says; None where it says nothing."""

    weight: Sequence[str] | None
    """`NAME=NUMBER`."""
    split: Sequence[str] | None
    """`NAME=SHARE`."""
    stratify: Sequence[str] | None
    """Fields."""
    leaks_against: Sequence[str] | None
    """Benchmarks."""
    set_field: Sequence[str] | None
    """`FIELD=VALUE`."""
    skip_bad_rows: bool
    """Count what cannot be read."""
    near_duplicates: float | None
    """The threshold."""
    plain: Mapping[str, Any]
    """Fields with one value, dotted."""

    def fields(self) -> dict[str, Any]:
        """As recipe fields, but for the weights. Raises ConfigError."""
        fields: dict[str, Any] = {}
        for name, value in self.plain.items():
            if value is not None:
                fields = merged(fields, _nested(name, value))
        if self.split:
            fields["splits"] = {"shares": key_values(self.split, "--split")}
        if self.stratify:
            fields["stratify"] = [{"by": name} for name in self.stratify]
        if self.leaks_against:
            fields["leaks"] = {"against": list(self.leaks_against)}
        if self.skip_bad_rows:
            fields["on_bad_row"] = "skip"
        if self.near_duplicates is not None:
            fields = merged(fields, _nested("filters.near_duplicates.threshold", self.near_duplicates))
        return merged(fields, key_values(self.set_field or (), "--set"))


def resolved(sources: Sequence[str], flags: MixFlags) -> tuple[MixRecipe, str]:
    """The recipe with names for all sources, and its file's text, empty where there is none.

    Raises ConfigError that names each wrong field, with the closest right name.
    """
    if sources[0].endswith(_YAML):
        if len(sources) > 1:
            raise ConfigError(
                f"{sources[0]} is a recipe, and {sources[1]} is given beside it",
                hint="name all sources in the recipe, or give paths alone",
            )
        path = Path(sources[0])
        fields, text = recipe_fields(path, MixRecipe), path.read_text(encoding="utf-8")
        where = f"recipe {path}"
    else:
        fields, text, where = {"sources": [{"path": path} for path in sources]}, "", "the command line"
    over = flags.fields()
    if "splits" in over and isinstance(fields.get("splits"), dict):
        fields["splits"].pop("shares", None)  # splits are named anew, not added
    recipe = checked(MixRecipe, merged(fields, over), where=where, command=COMMAND)
    return _weighted(with_names(recipe), flags.weight or ()), text


def _weighted(recipe: MixRecipe, pairs: Sequence[str]) -> MixRecipe:
    weights = key_values(pairs, "--weight") if pairs else {}
    names = [source.name for source in recipe.sources]
    for name in weights:
        if name not in names:
            close = get_close_matches(name, names, n=1)
            raise ConfigError(
                f"--weight names no source: {name!r}" + (f"; did you mean {close[0]!r}?" if close else ""),
                hint=f"the sources are {', '.join(names)}",
            )
    fields = recipe.model_dump()
    for source in fields["sources"]:
        source["weight"] = weights.get(source["name"], source["weight"])
    return checked(MixRecipe, fields, where="--weight", command=COMMAND) if pairs else recipe


def _nested(name: str, value: Any) -> dict[str, Any]:
    first, dot, rest = name.partition(".")
    return {first: _nested(rest, value) if dot else value}
