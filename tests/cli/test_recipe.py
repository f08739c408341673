"""A run is a recipe: from a file, from flags, or from the run that is resumed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from orchard_core import ConfigError
from orchard_core.cli.options import key_values
from orchard_core.cli.recipe import Recipe, load_recipe, make_recipe, merged, to_yaml


def test_values_are_what_they_look_like() -> None:
    assert key_values(["a=1", "b=true", "c=x y", "d=[1, 2]", "e=", "f=a=b", "g.h=2.5"], "--x") == {
        "a": 1, "b": True, "c": "x y", "d": [1, 2], "e": "", "f": "a=b", "g": {"h": 2.5},
    }  # fmt: skip


@pytest.mark.parametrize(
    "value", ["2024-01-01", "[2024-01-01]", "{1: 2}", "!!set {a}", "!!binary aGk=", "&a [*a]"]
)
def test_a_value_that_json_lacks_stays_text(value: str) -> None:
    assert key_values([f"a={value}"], "--x") == {"a": value}


@pytest.mark.parametrize("pair", ["novalue", "=1", ".a=1", "a..b=1"])
def test_a_pair_that_is_none_is_refused(pair: str) -> None:
    with pytest.raises(ConfigError, match="is not key=value"):
        key_values([pair], "--harness-option")


def test_a_key_that_is_both_value_and_group_is_refused() -> None:
    with pytest.raises(ConfigError, match="both as a value and as a group"):
        key_values(["a=1", "a.b=2"], "--harness-option")


def test_a_misspelt_field_is_named_with_the_closest_right_one() -> None:
    with pytest.raises(ConfigError, match="unknown field 'atempts'; did you mean 'attempts'"):
        make_recipe({"taskset": "t", "model": "m", "atempts": 3}, where="r.yaml")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (
            {"taskset": "t", "modle": "m"},
            "r.yaml: unknown field 'modle'; did you mean 'model'?; field 'model'",
        ),
        (
            {"taskset": "t", "model": "m", "limits": {"turnz": 3}},
            "unknown field 'limits.turnz'; did you mean 'limits.turns'?",
        ),
    ],
)
def test_what_is_misspelt_is_told_before_what_is_missing_for_it(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as raised:
        make_recipe(fields, where="r.yaml")
    assert said in raised.value.message


def test_a_recipe_that_is_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "r.yaml"
    os.mkfifo(pipe)
    with pytest.raises(ConfigError, match="is not a file"):
        load_recipe(pipe)


def test_a_wrong_value_names_its_field_and_file() -> None:
    with pytest.raises(ConfigError, match=r"r\.yaml: field 'attempts' should be greater than or equal to 1"):
        make_recipe({"taskset": "t", "model": "m", "attempts": 0}, where="r.yaml")


@pytest.mark.parametrize("name", ["api_key", "OPENAI_API_KEY", "password", "client_secret"])
def test_a_key_among_the_options_is_refused_because_options_are_stored(name: str) -> None:
    with pytest.raises(ConfigError, match="environment"):
        make_recipe({"taskset": "t", "model": "m", "model_options": {name: "sk-1"}}, where="flags")


def test_a_key_hidden_deeper_is_refused_and_the_name_of_its_variable_is_not() -> None:
    headers = {"headers": {"X-Api-Key": "sk-1"}}
    with pytest.raises(ConfigError, match="X-Api-Key would be stored"):
        make_recipe({"taskset": "t", "model": "m", "model_options": headers}, where="flags")
    make_recipe({"taskset": "t", "model": "m", "model_options": {"api_key_env": "MY_KEY"}}, where="flags")


def test_the_refusal_does_not_repeat_the_key() -> None:
    with pytest.raises(ConfigError) as refused:
        make_recipe(
            {"taskset": "t", "model": "m", "model_options": {"api_key": "sk-verysecret"}}, where="flags"
        )
    assert "sk-verysecret" not in str(refused.value)


def test_flags_go_over_the_file_field_by_field() -> None:
    file = {"taskset": "a", "limits": {"turns": 5, "tokens": 100}, "tasks": ["x"]}
    assert merged(file, {"limits": {"turns": 9}, "tasks": ["y"]}) == {
        "taskset": "a", "limits": {"turns": 9, "tokens": 100}, "tasks": ["y"],
    }  # fmt: skip


def test_the_printed_recipe_is_the_same_run(tmp_path: Path) -> None:
    recipe = make_recipe(
        {"taskset": "workbench:4", "model": "oracle", "harness_options": {"a": 1}, "limits": {"turns": 3}},
        where="-",
    )
    saved = tmp_path / "r.yaml"
    saved.write_text(to_yaml(recipe))
    assert make_recipe(load_recipe(saved), where="r") == recipe


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [1", "is not YAML"),
        ("a: 2020-99-99", "is not YAML"),
        (f"a: {'9' * 5000}", "is not YAML"),
        (f"a: {'[' * 20000}", "is not YAML"),
        ("- 1\n", "not a mapping"),
        (None, "cannot be read"),
    ],
    ids=lambda text: str(text)[:16],
)
def test_a_recipe_that_cannot_be_read_says_why(tmp_path: Path, text: str | None, said: str) -> None:
    path = tmp_path / "r.yaml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ConfigError, match=said):
        load_recipe(path)


def test_every_field_of_a_recipe_says_what_it_is() -> None:
    assert [name for name, field in Recipe.model_fields.items() if not field.description] == []
