"""From flags, a recipe file and a run to be resumed to one checked recipe."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchard_core.cli.recipe import Recipe, load_recipe, make_recipe, merged
from orchard_core.errors import ConfigError

if TYPE_CHECKING:
    from orchard_core.cli.run_flags import Flags

_WRITTEN = frozenset(
    {
        "taskset", "taskset_options", "harness", "harness_options", "model", "model_options",
        "sandbox", "sandbox_options", "tasks", "limit",
    }
)  # fmt: skip
"""Fields that a run stores as the user wrote them, so that a resumed run finds them again. The rest has a
place of its own in the stored configuration, or may differ when a run is resumed."""


def written(recipe: Recipe) -> dict[str, Any]:
    """Those fields of a recipe."""
    return recipe.model_dump(mode="json", include=set(_WRITTEN))


def resolved(flags: Flags, *, resume: bool) -> Recipe:
    """The recipe: the run's own when it is resumed, else the file's; flags go over it. Raises ConfigError."""
    given = flags.fields()
    where = "orchard run"
    base: Mapping[str, Any] = {}
    if resume:
        base = stored(Path(_out(given)))
    if flags.recipe_path:
        where = str(flags.recipe_path)
        base = merged(base, load_recipe(flags.recipe_path))
    fields = merged(base, given)
    if fields.keys() - Recipe.model_fields.keys():
        return make_recipe(fields, where=where)  # it tells what is misspelt, which is why another is missing
    if not fields.get("taskset"):
        raise ConfigError(
            "no task set was named",
            hint="orchard run workbench:16 --model oracle, or orchard run RECIPE.yaml",
        )
    if not fields.get("model"):
        raise ConfigError(
            "no model was named",
            hint="--model oracle to try things out; --model openai:NAME, with --base-url for your server",
        )
    return make_recipe(fields, where=where)


def _out(given: Mapping[str, Any]) -> str:
    if not given.get("out"):
        raise ConfigError("--resume needs the run", hint="orchard run --resume --out RUN; orchard runs list")
    return str(given["out"])


def stored(root: Path) -> dict[str, Any]:
    """A stored run's recipe fields. Raises RunNotFound."""
    from orchard_core.rollout.store.run import read_config

    config = read_config(root).model_dump(mode="json")
    recipe = config["options"].get("recipe", {})
    own = ("attempts", "concurrency", "seed", "limits", "retry", "settings")
    named = ("taskset", "harness", "model", "sandbox")
    fields = {name: config[name] for name in (*named, *own)}
    fields["allow_host_fallback"] = config["settings"]["allow_host_fallback"]
    return fields | {name: value for name, value in recipe.items() if name in _WRITTEN}


def new_directory(recipe: Recipe) -> str:
    """A run directory that tells what is in it and does not exist yet."""
    parts = (recipe.taskset, recipe.harness, recipe.model)
    name = "-".join(re.sub(r"[^A-Za-z0-9.]+", "-", part).strip("-.")[-32:] for part in parts)
    base = Path("runs") / f"{time.strftime('%Y%m%d-%H%M%S')}-{name}"
    path, number = base, 1
    while path.exists():
        number += 1
        path = base.with_name(f"{base.name}-{number}")
    return str(path)
