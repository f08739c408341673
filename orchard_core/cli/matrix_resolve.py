"""From flags, a recipe file and a matrix to be gone on with to one checked recipe."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from orchard_core.cli.matrix_recipe import MatrixRecipe, stored_fields, stored_parts
from orchard_core.cli.recipe import merged
from orchard_core.errors import ConfigError
from orchard_core.plugins.recipe_file import checked, recipe_fields
from orchard_core.rollout.matrix.plan import is_matrix, read_plan

_KINDS = {"harnesses": "--harness", "models": "--model", "tasksets": "--taskset"}


def resolved(source: str, given: Mapping[str, Any]) -> MatrixRecipe:
    """What the directory has, under what the file says, under what the flags say.

    Harnesses, models and task sets that are named are run with all of the kinds that are not; when none is
    named, the cells of the directory are gone on with. Raises ConfigError.
    """
    where = source or "orchard matrix"
    asked = merged(recipe_fields(_file(source), MatrixRecipe), given) if source else dict(given)
    out = asked.get("out")
    known = isinstance(out, str) and is_matrix(Path(out))
    if known:
        plan = read_plan(Path(str(out)))
        parts = stored_parts(plan) if any(asked.get(kind) for kind in _KINDS) else {}
        asked = merged({**stored_fields(plan), **parts}, asked)
    recipe = checked(MatrixRecipe, asked, where=where, command="orchard matrix")
    missing = [flag for kind, flag in _KINDS.items() if not getattr(recipe, kind)]
    if missing and not (known and len(missing) == len(_KINDS)):
        raise ConfigError(
            f"{where} names no {' and no '.join(missing)}",
            hint="orchard matrix --harness react --model oracle --taskset workbench:8",
        )
    return recipe


def _file(source: str) -> Path:
    path = Path(source)
    if path.suffix not in {".yaml", ".yml"}:
        raise ConfigError(
            f"{source} is not a YAML file",
            hint="to go on with a matrix: --out DIRECTORY; task sets: --taskset",
        )
    return path


def new_directory() -> str:
    """A matrix directory that does not exist yet."""
    base = Path("matrices") / time.strftime("%Y%m%d-%H%M%S")
    path, number = base, 1
    while path.exists():
        number += 1
        path = base.with_name(f"{base.name}-{number}")
    return str(path)
