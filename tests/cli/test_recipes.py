"""Each shipped recipe is complete and can be run."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchard_core.cli.exits import Exit

from .conftest import ROOT, Orchard

MATRICES = sorted((ROOT / "recipes").glob("matrix-*.yaml"))
RECIPES = sorted({*(ROOT / "recipes").glob("*.yaml")} - {*MATRICES})


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.stem)
def test_the_recipe_would_run(orchard: Orchard, recipe: Path) -> None:
    done = orchard("run", str(recipe), "--dry-run", OPENAI_API_KEY="sk-test")
    assert done.returncode == Exit.OK, done.stderr


@pytest.mark.parametrize("recipe", MATRICES, ids=lambda path: path.stem)
def test_the_matrix_would_run(orchard: Orchard, recipe: Path) -> None:
    done = orchard("matrix", str(recipe), "--dry-run", OPENAI_API_KEY="sk-test")
    assert done.returncode == Exit.OK, done.stderr
    assert "would run" in done.stdout


def test_there_are_recipes() -> None:
    assert len(RECIPES) >= 2
    assert MATRICES
