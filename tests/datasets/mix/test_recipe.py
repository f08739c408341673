"""What users write: recipes, flags over them, and what is said of mistakes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from orchard_core import (
    ConfigError,
    MixExhausted,
    MixFilters,
    MixLeaks,
    MixRecipe,
    MixRows,
    MixShards,
    MixSource,
    MixSplits,
    MixStratum,
    MixWhere,
    NearDuplicates,
    read_mix_recipe,
)
from orchard_core.cli.exits import Exit
from tests.cli.conftest import Orchard, command
from tests.datasets.mix.making import ids, line, plain_source, source


@pytest.fixture
def orchard(tmp_path: Path) -> Orchard:
    """The command, in a directory with two sources."""
    plain_source(tmp_path / "one.jsonl", 4)
    plain_source(tmp_path / "two.jsonl", 4)
    return command(tmp_path)


def written(tmp_path: Path, text: str) -> str:
    """A recipe's path."""
    (tmp_path / "mix.yaml").write_text(text)
    return "mix.yaml"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("sources: [{path: one.jsonl}]\nsead: 3\n", "unknown field 'sead'; did you mean 'seed'?"),
        ("sources: [{pth: one.jsonl}]\n", "did you mean 'sources.0.path'?"),
        ("sources: [{path: one.jsonl, where: {harnes: react}}]\n", "did you mean 'sources.0.where.harness'?"),
        ("sources: [{path: one.jsonl}]\nfilters: {max_token: 5}\n", "did you mean 'filters.max_tokens'?"),
        ("sources: []\n", "field 'sources' has too few entries"),
        ("sources: one.jsonl\n", "field 'sources' should be a list"),
        (
            "sources: [one.jsonl]\n",
            "'sources.0' should be a mapping of fields, such as path, name, format hint",
        ),
        ("sources: [{path: a}]\nfilters: {near_duplicates: 0.9}\n", "a mapping of fields, such as threshold"),
        ("sources: [{path: a, name: x}, {path: b, name: x}]\n", "two sources are named 'x'"),
        ("sources: [{path: one.jsonl}]\nrows: {exhausted: halt}\n", "'first_exhausted', 'all_exhausted'"),
        ("sources: [{path: one.jsonl}]\nstratify: [{by: task}]\n", "'harness', 'model', 'taskset'"),
        ("sources: [{path: one.jsonl}]\nsplits: {shares: {tr ain: 1}}\n", "names no split"),
        ("sources: [{path: one.jsonl, weight: -1}]\n", "greater than or equal to 0"),
        ("seed: 1\nseed: 2\n", "names 'seed' (line 2) twice"),
        ("sources: [{path: one.jsonl, weight: 0}]\n", "every source has weight 0"),
        (
            "sources: [{path: one.jsonl, weight: 1.0e+308}, {path: two.jsonl, weight: 1.0e+308}]\n",
            "the weights are too large to be added up",
        ),
        (
            "sources: [{path: one.jsonl}]\nsplits: {shares: {a: 1.0e+308, b: 1.0e+308}}\n",
            "the shares are too large to be added up",
        ),
    ],
)
def test_a_mistake_in_a_recipe_is_named(tmp_path: Path, orchard: Orchard, text: str, said: str) -> None:
    done = orchard("data", "mix", written(tmp_path, text), "--out", "out")
    assert done.returncode == Exit.USAGE
    assert said in done.stderr.replace("\n", " ")
    assert not (tmp_path / "out").exists()


def test_flags_lie_over_a_recipe(tmp_path: Path, orchard: Orchard) -> None:
    recipe = written(tmp_path, "sources: [{path: one.jsonl, name: a}, {path: two.jsonl}]\nseed: 3\n")
    flags = ["--seed", "4", "--weight", "a=2", "--split", "train=0.9", "--split", "test=0.1", "--total", "6"]
    more = ["--max-tokens", "5000", "--set", "filters.unscored=true", "--stratify", "outcome"]
    done = orchard("data", "mix", recipe, *flags, *more, "--print-config")
    told = yaml.safe_load(done.stdout)
    assert (told["seed"], told["rows"]["total"]) == (4, 6)
    assert [(part["name"], part["weight"]) for part in told["sources"]] == [("a", 2.0), ("two", None)]
    assert told["splits"]["shares"] == {"train": 0.9, "test": 0.1}
    assert (told["filters"]["max_tokens"], told["filters"]["unscored"]) == (5000, True)
    assert told["stratify"] == [{"by": "outcome", "shares": "equal"}]
    (tmp_path / "again.yaml").write_text(done.stdout)
    assert orchard("data", "mix", "again.yaml", "--print-config").stdout == done.stdout


def test_paths_alone_are_a_recipe(tmp_path: Path, orchard: Orchard) -> None:
    done = orchard("data", "mix", "one.jsonl", "two.jsonl", "--out", "out", "--seed", "0")
    assert done.returncode == Exit.OK, done.stderr
    assert "wrote 8 rows in 1 file to out" in done.stdout
    assert len(ids(tmp_path / "out")) == 8


def test_a_dry_run_writes_nothing_and_says_what_and_why(tmp_path: Path, orchard: Orchard) -> None:
    source(tmp_path / "bad.jsonl", [line("x\x1b[31m", token_count=99_999), line("y")])
    before = sorted(tmp_path.iterdir())
    done = orchard("data", "mix", "one.jsonl", "bad.jsonl", "--dry-run")
    assert done.returncode == Exit.OK, done.stderr
    assert "over_long: bad row 0 (x" in done.stdout
    assert "it has 99,999 tokens" in done.stdout
    assert "would write 5 rows" in done.stdout
    assert "\x1b" not in done.stdout
    assert sorted(tmp_path.iterdir()) == before


def test_json_says_the_same(orchard: Orchard) -> None:
    told = json.loads(orchard("data", "mix", "one.jsonl", "--dry-run", "--json").stdout)
    assert (told["rows"], told["sources"][0]["read"]) == (4, 4)
    made = json.loads(orchard("data", "mix", "one.jsonl", "--out", "out", "--json").stdout)
    assert made["rows"] == 4
    assert made["made"]["by"] == "orchard data mix"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("one.jsonl",), "no directory to write to"),
        (("one.jsonl", "--out", "out", "--weight", "oen=2"), "did you mean 'one'?"),
        (("mix.yaml", "one.jsonl", "--out", "out"), "is a recipe, and one.jsonl is given beside it"),
        (("gone.yaml", "--out", "out"), "recipe gone.yaml cannot be read"),
        (("one.jsonl", "--out", "out", "--set", "shard.rows=3"), "did you mean 'shards'?"),
    ],
)
def test_a_mistake_in_a_command_is_named(orchard: Orchard, args: tuple[str, ...], said: str) -> None:
    done = orchard("data", "mix", *args)
    assert done.returncode == Exit.USAGE
    assert said in done.stderr.replace("\n", " ")


WHOLE = """
sources: [{path: one.jsonl, where: {harness: react}}]
rows: {total: 3, exhausted: all_exhausted}
stratify: [{by: outcome}]
filters: {near_duplicates: {threshold: 0.8}}
splits: {shares: {train: 0.9, test: 0.1}}
leaks: {against: [bench.txt]}
shards: {rows: 100}
"""


def test_a_recipe_file_and_one_made_of_its_parts_are_the_same(tmp_path: Path) -> None:
    made = MixRecipe(
        sources=(MixSource(path="one.jsonl", where=MixWhere(harness=("react",))),),
        rows=MixRows(total=3, exhausted=MixExhausted.ALL),
        stratify=(MixStratum(by="outcome"),),
        filters=MixFilters(near_duplicates=NearDuplicates(threshold=0.8)),
        splits=MixSplits(shares={"train": 0.9, "test": 0.1}),
        leaks=MixLeaks(against=("bench.txt",)),
        shards=MixShards(rows=100),
    )
    assert read_mix_recipe(tmp_path / written(tmp_path, WHOLE)) == made


def test_a_mistake_in_a_recipe_file_that_python_reads_is_named(tmp_path: Path) -> None:
    path = tmp_path / written(tmp_path, "sources: [{path: one.jsonl}]\nsead: 3\n")
    with pytest.raises(ConfigError, match=r"mix.yaml: unknown field 'sead'; did you mean 'seed'\?"):
        read_mix_recipe(path)
