"""Runs as sources, with credit put on their rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchard_core.datasets.credit.head import CreditHead
from orchard_core.datasets.credit.writer import CreditWriter
from orchard_core.datasets.mix.run import dry_mix, mix
from orchard_core.datasets.store.reader import open_dataset
from orchard_core.errors import CreditRefused, DatasetNotFound
from tests.datasets.credit.making import make_credit, make_rollout, write_run
from tests.datasets.mix.making import dropped, recipe

LOOSE = {"undefined_tools": False}
"""The rollouts of these tests were shown no tools."""


async def credited(tmp_path: Path, *names: str) -> Path:
    """A run of three rollouts, these of them with credit."""
    run = await write_run(tmp_path / "run", [make_rollout(name, turns=3) for name in ("one", "two", "three")])
    with CreditWriter.open(run / "credit" / "judge", CreditHead(estimator="judge")) as writer:
        for name in names:
            writer.add(make_credit(name))
    return run


async def test_a_run_is_a_source_and_says_where_its_rows_are_from(tmp_path: Path) -> None:
    run = await write_run(
        tmp_path / "run", [make_rollout("one"), make_rollout("two", score=1.0, observation="no")]
    )
    made = mix(recipe(run, filters=LOOSE), tmp_path / "out")
    assert made.made.sources[0].kind == "run"
    rows = {row.id: row for row in open_dataset(tmp_path / "out")}
    assert {name: row.reward for name, row in rows.items()} == {"one": 0.0, "two": 1.0}
    assert rows["one"].provenance["run"] == "run"


@pytest.mark.parametrize("named", ["judge", "path"])
async def test_credit_narrows_what_is_trained_and_rows_without_are_left_out(
    tmp_path: Path, named: str
) -> None:
    run = await credited(tmp_path, "one", "three")
    credit = "judge" if named == "judge" else str(run / "credit" / "judge")
    same = {**LOOSE, "exact_duplicates": False}
    made = mix(recipe({"path": str(run), "credit": credit}, filters=same), tmp_path / "out")
    assert dropped(made) == {"run": {"uncredited": 1}}
    rows = list(open_dataset(tmp_path / "out"))
    assert sorted(row.id for row in rows) == ["one", "three"]
    for row in rows:
        assert (row.credit, sum(row.mask)) == ("judge", sum(make_credit(row.id).mask))
        assert row.values == (0.1, 0.4, 0.4, 0.2)


async def test_rows_that_credit_leaves_nothing_of_are_counted(tmp_path: Path) -> None:
    run = await write_run(tmp_path / "run", [make_rollout("one", turns=3)])
    with CreditWriter.open(run / "credit" / "judge", CreditHead(estimator="judge")) as writer:
        writer.add(make_credit("one", (0.5, 0.4, 0.3, 0.2)))
    told = dry_mix(recipe({"path": str(run), "credit": "judge"}, filters=LOOSE))
    assert dict(told.sources[0].dropped) == {"untrained": 1}


async def test_credit_of_other_turns_is_refused(tmp_path: Path) -> None:
    run = await write_run(tmp_path / "run", [make_rollout("one", turns=5)])
    with CreditWriter.open(run / "credit" / "judge", CreditHead(estimator="judge")) as writer:
        writer.add(make_credit("one"))
    with pytest.raises(CreditRefused, match="rollout one has 3 turns, and its row has 5"):
        mix(recipe({"path": str(run), "credit": "judge"}, filters=LOOSE), tmp_path / "out")
    assert not (tmp_path / "out").exists()


async def test_credit_that_is_not_there_is_named(tmp_path: Path) -> None:
    run = await write_run(tmp_path / "run", [make_rollout("one")])
    with pytest.raises(DatasetNotFound, match="'branch' is no directory of credits"):
        mix(recipe({"path": str(run), "credit": "branch"}), tmp_path / "out")
