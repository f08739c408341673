"""Mixing whole sources: shares, strata, splits, order and names, the same every time."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchard_core.datasets.mix.outcome import resolved
from orchard_core.datasets.mix.run import dry_mix, mix
from orchard_core.datasets.store.reader import open_dataset
from orchard_core.errors import ConfigError
from tests.cli.conftest import ARGV, environment
from tests.datasets.mix.making import files, ids, kept, line, plain_source, recipe, source


def test_a_natural_mix_holds_every_row_once(tmp_path: Path) -> None:
    one, other = plain_source(tmp_path / "one.jsonl", 7), plain_source(tmp_path / "other.jsonl", 3)
    made = mix(recipe(one, other), tmp_path / "out")
    assert (made.rows, kept(made)) == (10, {"one": 7, "other": 3})
    told = list(open_dataset(tmp_path / "out"))
    assert {row.id for row in told} == {f"one-{n}" for n in range(7)} | {f"other-{n}" for n in range(3)}
    assert {row.source for row in told} == {"one", "other"}
    assert {row.split for row in told} == {"train"}


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    counts=st.lists(st.integers(1, 30), min_size=2, max_size=3),
    weights=st.lists(st.integers(1, 5), min_size=3, max_size=3),
    seed=st.integers(0, 3),
)
def test_weights_are_met_to_less_than_one_row(
    tmp_path: Path, counts: list[int], weights: list[int], seed: int
) -> None:
    listed = [
        {"path": str(plain_source(tmp_path / f"s{place}.jsonl", count)), "weight": weights[place]}
        for place, count in enumerate(counts)
    ]
    told = dry_mix(recipe(*listed, seed=seed))
    total = sum(weights[: len(counts)])
    for report, weight in zip(told.sources, weights, strict=False):
        assert abs(report.kept - told.rows * weight / total) < 1


def test_equal_strata_are_equal_and_given_ones_as_given(tmp_path: Path) -> None:
    lines = [
        line(f"r{number}", outcome="completed" if number % 4 else "truncated", harness=f"h{number % 3}")
        for number in range(60)
    ]
    path = source(tmp_path / "a.jsonl", lines)
    mix(recipe(path, stratify=[{"by": "outcome"}]), tmp_path / "equal")
    told = Counter(str(row.outcome) for row in open_dataset(tmp_path / "equal"))
    assert told == {"completed": 15, "truncated": 15}
    asked = [{"by": "outcome", "shares": {"truncated": 0.2}}, {"by": "harness"}]
    mix(recipe(path, stratify=asked, rows={"total": 30}), tmp_path / "given")
    rows = list(open_dataset(tmp_path / "given"))
    assert Counter(str(row.outcome) for row in rows)["truncated"] == 6
    assert set(Counter(row.harness for row in rows).values()) == {10}


def test_repeats_get_names_of_their_own_and_only_the_first_split_has_them(tmp_path: Path) -> None:
    few, many = plain_source(tmp_path / "few.jsonl", 10), plain_source(tmp_path / "many.jsonl", 60)
    asked = recipe(
        {"path": str(few), "weight": 1}, {"path": str(many), "weight": 1},
        rows={"exhausted": "all_exhausted", "max_repeats": 20},
        splits={"shares": {"train": 0.8, "test": 0.2}, "similar_tasks": None},
    )  # fmt: skip
    made = mix(asked, tmp_path / "out")
    train, test = ids(tmp_path / "out", "train"), ids(tmp_path / "out", "test")
    assert len(set(train + test)) == len(train + test) == made.rows
    assert any("~" in name for name in train)
    assert not any("~" in name for name in test)
    assert Counter(name[:3] for name in train)["few"] * 2 == len(train)


def test_a_row_may_be_called_as_a_repeat_would_be(tmp_path: Path) -> None:
    few = source(tmp_path / "few.jsonl", [line("a"), line("a~2")])
    many = plain_source(tmp_path / "many.jsonl", 6)
    asked = recipe(
        {"path": str(few), "weight": 1}, {"path": str(many), "weight": 1},
        rows={"exhausted": "all_exhausted"},
    )  # fmt: skip
    mix(asked, tmp_path / "out")
    names = ids(tmp_path / "out")
    assert len(set(names)) == len(names) == 12
    assert {"a", "a~2"} <= set(names)


def test_sources_that_overlap_without_the_filter_keep_both_under_two_names(tmp_path: Path) -> None:
    path = plain_source(tmp_path / "a.jsonl", 3)
    asked = recipe(path, path, filters={"exact_duplicates": False})
    made = mix(asked, tmp_path / "out")
    assert kept(made) == {"a": 3, "a-2": 3}
    assert len(set(ids(tmp_path / "out"))) == 6


def test_sources_that_overlap_give_each_row_once(tmp_path: Path) -> None:
    path = plain_source(tmp_path / "a.jsonl", 3)
    assert kept(mix(recipe(path, path), tmp_path / "out")) == {"a": 3, "a-2": 0}


def test_no_task_stands_in_two_splits(tmp_path: Path) -> None:
    lines = [line(f"r{number}", task=f"t{number % 20}", task_text=f"{number % 20}") for number in range(100)]
    path = source(tmp_path / "a.jsonl", lines)
    mix(recipe(path, splits={"shares": {"train": 7, "test": 2, "dev": 1}}), tmp_path / "out")
    held = open_dataset(tmp_path / "out")
    tasks = {split: {row.task for row in held.rows(split)} for split in ("train", "test", "dev")}
    assert all(tasks.values())
    assert not tasks["train"] & tasks["test"]
    assert not tasks["train"] & tasks["dev"]
    assert not tasks["test"] & tasks["dev"]
    assert sum(len(found) for found in tasks.values()) == 20


def test_a_total_is_kept_over_all_splits(tmp_path: Path) -> None:
    path = plain_source(tmp_path / "a.jsonl", 200)
    asked = recipe(path, rows={"total": 50}, splits={"shares": {"train": 0.8, "test": 0.2}})
    told = dry_mix(asked)
    assert told.rows == 50
    assert told.splits == {"train": 40, "test": 10}
    assert told.sources[0].dropped == {"not_drawn": 150}


def test_without_shuffling_rows_stand_as_in_their_sources(tmp_path: Path) -> None:
    one, other = plain_source(tmp_path / "one.jsonl", 3), plain_source(tmp_path / "other.jsonl", 2)
    mix(recipe(one, other, shuffle=False), tmp_path / "out")
    assert ids(tmp_path / "out") == ["one-0", "one-1", "one-2", "other-0", "other-1"]


def test_shards_hold_so_many_rows_and_load_with_datasets(tmp_path: Path) -> None:
    path = plain_source(tmp_path / "a.jsonl", 10)
    made = mix(recipe(path, shards={"rows": 4}), tmp_path / "out")
    assert [shard.rows for shard in made.shards] == [4, 4, 2]
    load = (
        "import sys, datasets\n"
        "found = datasets.load_dataset(sys.argv[1], cache_dir=sys.argv[2])\n"
        "print(*found['train']['id'][:])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", load, str(tmp_path / "out"), str(tmp_path / "cache")], cwd=tmp_path,
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.split() == ids(tmp_path / "out")


def test_another_seed_gives_another_order(tmp_path: Path) -> None:
    path = plain_source(tmp_path / "a.jsonl", 30)
    for seed in (0, 1):
        mix(recipe(path, seed=seed), tmp_path / str(seed))
    assert ids(tmp_path / "0") != ids(tmp_path / "1")
    assert sorted(ids(tmp_path / "0")) == sorted(ids(tmp_path / "1"))


def test_a_source_that_is_added_changes_no_draw_of_the_others(tmp_path: Path) -> None:
    one, other = plain_source(tmp_path / "one.jsonl", 40), plain_source(tmp_path / "other.jsonl", 40)
    mix(recipe(one, rows={"total": 10}), tmp_path / "alone")
    both = recipe({"path": str(one), "weight": 1}, {"path": str(other), "weight": 1}, rows={"total": 20})
    mix(both, tmp_path / "both")
    assert set(ids(tmp_path / "alone")) <= set(ids(tmp_path / "both"))


def test_max_rows_stops_reading(tmp_path: Path) -> None:
    path = source(tmp_path / "a.jsonl", [line("bad", token_count=99_999), *map(line, "abcdef")])
    told = dry_mix(recipe({"path": str(path), "max_rows": 2})).sources[0]
    assert (told.read, told.kept) == (3, 2)


@pytest.mark.parametrize(("hash_seed", "workers"), [("0", "1"), ("1", "2"), ("77", "3")])
def test_any_process_with_any_number_of_workers_writes_the_same_bytes(
    tmp_path: Path, hash_seed: str, workers: str
) -> None:
    lines = [
        line(f"r{number}", task=f"t{number % 9}", outcome=("completed", "truncated")[number % 2])
        for number in range(50)
    ]
    source(tmp_path / "one.jsonl", lines)
    plain_source(tmp_path / "other.jsonl", 40)
    asked = {
        "sources": [{"path": "one.jsonl", "weight": 2}, {"path": "other.jsonl", "weight": 1}],
        "stratify": [{"by": "outcome", "shares": {"truncated": 0.3}}], "shards": {"rows": 9},
        "splits": {"shares": {"train": 0.7, "test": 0.3}}, "rows": {"exhausted": "all_exhausted"},
    }  # fmt: skip
    (tmp_path / "mix.yaml").write_text(json.dumps(asked))
    for out, count, seed in (("first", "1", "5"), ("second", workers, hash_seed)):
        subprocess.run(
            [*ARGV, "data", "mix", "mix.yaml", "--out", out, "--workers", count], cwd=tmp_path, check=True,
            capture_output=True, env=environment(PYTHONHASHSEED=seed),
        )  # fmt: skip
    assert files(tmp_path / "first") == files(tmp_path / "second")
    assert not (tmp_path / "first" / ".mix").exists()


def test_the_recipe_stands_in_the_manifest_resolved_and_as_written(tmp_path: Path) -> None:
    path = plain_source(tmp_path / "a.jsonl", 2)
    asked = recipe(path, seed=5)
    made = mix(asked, tmp_path / "out", recipe_text="seed: 5 # as written").made
    assert made.recipe_text == "seed: 5 # as written"
    assert made.seed == 5
    assert recipe(**{**made.recipe, "sources": made.recipe["sources"]}) == made_again(made.recipe)
    assert made.sources[0].kind == "hf"
    assert len(made.sources[0].digest) == 64
    assert {"orchard-core", "pyarrow"} <= made.versions.keys()
    assert resolved(asked) == resolved(recipe(path, seed=5))


def made_again(fields: object) -> object:
    """The stored recipe is a recipe."""
    from orchard_core.datasets.mix.recipe import MixRecipe

    return MixRecipe.model_validate(fields)


def test_shares_that_no_row_can_meet_name_the_value(tmp_path: Path) -> None:
    path = plain_source(tmp_path / "a.jsonl", 5)
    asked = recipe(path, stratify=[{"by": "outcome", "shares": {"truncated": 0.5}}])
    with pytest.raises(ConfigError, match="no row is left of outcome 'truncated'"):
        mix(asked, tmp_path / "out")
    assert not (tmp_path / "out").exists(), "the next recipe finds nothing in its way"
