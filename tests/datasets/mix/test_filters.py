"""Each published filter: what it drops, what it leaves, and that a row is counted once, by the first."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchard_core.datasets.mix.filters import Drop
from orchard_core.datasets.mix.run import dry_mix, mix
from tests.datasets.mix.making import TOOLS, call, dropped, ids, kept, line, recipe, source, talk

BROKEN: dict[str, tuple[str, dict[str, Any]]] = {
    "failed": ("harness_failed", {"outcome": "harness_failed"}),
    "over_long": ("70,000 tokens", {"token_count": 70_000}),
    "undefined_tools": ("'sing'", {"messages": talk("x", call("sing"))}),
    "unparsable": ("no JSON object", {"messages": talk("x", call(arguments='{"command":'))}),
    "untrained": ("trained on", {"mask": [0, 0, 0, 0]}),
}


@pytest.mark.parametrize("reason", BROKEN)
def test_a_filter_drops_what_it_names_and_says_why(tmp_path: Path, reason: str) -> None:
    why, facts = BROKEN[reason]
    told = dry_mix(recipe(source(tmp_path / "a.jsonl", [line("good"), line("bad", **facts)])))
    assert dict(told.sources[0].dropped) == {reason: 1}
    assert (told.examples[0].id, told.examples[0].row) == ("bad", 1)
    assert why in told.examples[0].why


@pytest.mark.parametrize("arguments", ["", "{}", '{"a":1}', " {} "])
def test_arguments_that_are_an_object_or_nothing_are_fine(tmp_path: Path, arguments: str) -> None:
    path = source(tmp_path / "a.jsonl", [line("a", talk("x", call(arguments=arguments)))])
    assert dry_mix(recipe(path)).rows == 1


@pytest.mark.parametrize("arguments", ["[]", "1", '"text"', "null", "{", "{}{}", "x"])
def test_arguments_that_are_no_object_are_unparsable(tmp_path: Path, arguments: str) -> None:
    path = source(tmp_path / "a.jsonl", [line("a", talk("x", call(arguments=arguments)))])
    assert dict(dry_mix(recipe(path)).sources[0].dropped) == {"unparsable": 1}


SAID = (
    "Your answer called no tool. Call one of the tools: bash.",
    "There is no tool 'bsh'. Did you mean bash? The tools are: bash.",
    "The arguments of bash are not JSON: Expecting value. bash takes command (string).",
    "Tool call error:\n\n<error>\nNo tool calls found in the response.\n</error>",
    "Format error:\n\n<error>\nfound 2 actions\n</error>",
    "Tool 'bsh' not found. Available: ['bash']",
    "Error validating tool 'bash': 1 validation error.",
)


@pytest.mark.parametrize("said", SAID)
def test_an_answer_the_harness_could_not_act_on_is_unparsable(tmp_path: Path, said: str) -> None:
    path = source(tmp_path / "a.jsonl", [line("a", talk("x", told=f"\n{said}"))])
    told = dry_mix(recipe(path))
    assert dict(told.sources[0].dropped) == {"unparsable": 1}
    assert "message 2" in told.examples[0].why
    assert dry_mix(recipe(path, filters={"format_errors": []})).rows == 1


def test_words_drop_the_row_that_trains_the_answer_they_are_about(tmp_path: Path) -> None:
    said = {"role": "user", "content": SAID[3]}
    user, answer, result, last = talk("x")
    two = {**answer, "tool_calls": [call(), {**call(), "id": "call-2"}]}
    second = {"role": "tool", "content": SAID[5], "tool_call_id": "call-2"}
    plain = {"role": "assistant", "content": "I look."}
    aside = {"role": "user", "content": "Go on."}
    cases = {
        "the reply": ([user, answer, said, last], [0, 1, 0, 1], False),
        "of an untrained answer": ([user, answer, said, last], [0, 0, 0, 1], True),
        "after the result: of an answer that is not here": (
            [user, answer, result, said, last], [0, 1, 0, 0, 1], True,
        ),
        "the second result": ([user, two, result, second, last], [0, 1, 0, 0, 1], False),
        "the second result, late": ([user, two, result, aside, second, last], [0, 1, 0, 0, 0, 1], False),
        "the reply to text": ([user, plain, said, last], [0, 1, 0, 1], False),
        "after the reply to text": ([user, plain, aside, said, last], [0, 1, 0, 0, 1], True),
        "before all answers": ([user, said, answer, result, last], [0, 0, 1, 0, 1], True),
    }  # fmt: skip
    for name, (messages, mask, stays) in cases.items():
        path = source(tmp_path / "a.jsonl", [line("a", messages, mask=mask)])
        assert dry_mix(recipe(path)).rows == stays, name


@pytest.mark.parametrize(
    ("facts", "stays"),
    [
        ({"metadata": {"sent_instead": [{"role": "user", "content": SAID[3]}]}}, False),
        ({"metadata": {"last_observations": [{"role": "tool", "content": SAID[5]}]}}, False),
        ({"metadata": {"last_observations": [{"role": "tool", "content": "a.txt"}]}}, True),
        ({"metadata": {"sent_instead": [{"role": "user", "content": SAID[3]}]}, "mask": [0, 1, 0, 0]}, True),
        ({"provenance": {"stop": "malformed"}}, False),
        ({"provenance": {"stop": "malformed"}, "mask": [0, 1, 0, 0]}, True),
        ({"provenance": {"stop": "malformed"}, "label": "fork"}, True),
        ({"provenance": {"stop": "turn_limit"}}, True),
    ],
)
def test_a_last_answer_that_was_given_up_is_told_beside_the_messages(
    tmp_path: Path, facts: dict[str, Any], stays: bool
) -> None:
    path = source(tmp_path / "a.jsonl", [line("a", **facts)])
    assert dry_mix(recipe(path)).rows == stays
    assert dry_mix(recipe(path, filters={"format_errors": []})).rows == 1


def test_a_call_that_no_one_can_read_drops_its_row_trained_or_not(tmp_path: Path) -> None:
    path = source(tmp_path / "a.jsonl", [line("a", talk("x", call(arguments="{")), mask=[0, 0, 0, 1])])
    assert dict(dry_mix(recipe(path)).sources[0].dropped) == {"unparsable": 1}


@pytest.mark.parametrize("said", ["Tool 'x' said: fine", "A Format error: <error>", "There is no tool here."])
def test_output_that_only_resembles_such_words_is_not(tmp_path: Path, said: str) -> None:
    assert dry_mix(recipe(source(tmp_path / "a.jsonl", [line("a", talk("x", told=said))]))).rows == 1


def test_the_task_itself_may_quote_such_words(tmp_path: Path) -> None:
    assert dry_mix(recipe(source(tmp_path / "a.jsonl", [line("a", talk("Format error:<error>"))]))).rows == 1


def test_rows_without_tools_that_call_some_call_undefined_ones(tmp_path: Path) -> None:
    path = source(tmp_path / "a.jsonl", [line("a", tools="[]")])
    assert dict(dry_mix(recipe(path)).sources[0].dropped) == {"undefined_tools": 1}


def test_unscored_rows_are_dropped_when_asked(tmp_path: Path) -> None:
    path = source(tmp_path / "a.jsonl", [line("a"), line("b", reward=None)])
    assert dry_mix(recipe(path)).rows == 2
    assert dict(dry_mix(recipe(path, filters={"unscored": True})).sources[0].dropped) == {"unscored": 1}


def test_equal_rows_are_kept_from_the_first_source(tmp_path: Path) -> None:
    messages = talk("the same")
    one = source(tmp_path / "one.jsonl", [line("a", messages), line("b", messages)])
    other = source(tmp_path / "other.jsonl", [line("c", messages), line("d")])
    made = mix(recipe(one, other), tmp_path / "out")
    assert kept(made) == {"one": 1, "other": 1}
    assert dropped(made) == {"one": {"exact_duplicates": 1}, "other": {"exact_duplicates": 1}}
    assert sorted(ids(tmp_path / "out")) == ["a", "d"]


def test_nearly_equal_rows_of_one_task_are_dropped_when_asked(tmp_path: Path) -> None:
    words = [f"word{number}" for number in range(200)]
    one = json.dumps({"command": " ".join(words)})
    other = json.dumps({"command": " ".join([*words[:199], "else"])})
    lines = [
        line("a", talk("x", call(arguments=one)), task="t"),
        line("b", talk("y", call(arguments=other)), task="t"),
        line("c", talk("z", call(arguments=other)), task="u"),
    ]
    path = source(tmp_path / "a.jsonl", lines)
    assert dry_mix(recipe(path)).rows == 3
    told = dry_mix(recipe(path, filters={"near_duplicates": {"threshold": 0.8}}))
    assert dict(told.sources[0].dropped) == {"near_duplicates": 1}


def test_rows_of_a_benchmarks_tasks_are_dropped(tmp_path: Path) -> None:
    text = "Find out why the parser of dates refuses the last day of a leap year and mend it."
    path = source(tmp_path / "a.jsonl", [line("a", task_text=text), line("b")])
    (tmp_path / "bench.txt").write_text(text + "\n")
    told = dry_mix(recipe(path, leaks={"against": [str(tmp_path / "bench.txt")]}))
    assert dict(told.sources[0].dropped) == {"leaks": 1}
    assert told.examples[0].id == "a"


WHERE = st.fixed_dictionaries(
    {},
    optional={
        "harness": st.sampled_from(["react", "mini*", "zero"]),
        "outcome": st.just("completed"),
        "score_at_least": st.sampled_from([0.0, 0.5]),
        "tags": st.just(["hard"]),
    },
)
ROWS = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "harness": st.sampled_from(["react", "miniswe"]),
            "outcome": st.sampled_from(["completed", "truncated", "harness_failed"]),
            "reward": st.none() | st.sampled_from([0.0, 1.0]),
            "tags": st.just(["hard", "long"]),
            "token_count": st.sampled_from([10, 70_000]),
            "messages": st.sampled_from([talk("x"), talk("y", call("sing")), talk("z", call(arguments="["))]),
        },
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=ROWS, where=WHERE)
def test_every_row_that_was_read_is_kept_or_counted_once_by_the_first_filter(
    tmp_path: Path, rows: list[dict[str, Any]], where: dict[str, Any]
) -> None:
    path = source(tmp_path / "a.jsonl", (line(f"r{number}", **facts) for number, facts in enumerate(rows)))
    told = dry_mix(recipe({"path": str(path), "where": where})).sources[0]
    assert told.read == told.kept + sum(told.dropped.values()) == len(rows)
    assert Counter(dict(told.dropped)) == Counter(filter(None, _expected(rows, where)))


def _expected(rows: list[dict[str, Any]], where: dict[str, Any]) -> list[str]:
    """The first reason of each row, by the documented order, empty for those kept."""
    seen: set[str] = set()
    return [_first(number, row, where, seen) for number, row in enumerate(rows)]


def _first(number: int, row: dict[str, Any], where: dict[str, Any], seen: set[str]) -> str:
    harness, outcome = row.get("harness", "react"), row.get("outcome", "completed")
    reward = row.get("reward", 1.0)
    wanted = {"react": {"react"}, "mini*": {"miniswe"}, "zero": set()}
    text = json.dumps(row.get("messages", f"own {number}"))
    if (
        ("harness" in where and harness not in wanted[where["harness"]])
        or ("outcome" in where and outcome != "completed")
        or ("tags" in where and "tags" not in row)
        or ("score_at_least" in where and (reward is None or reward < where["score_at_least"]))
    ):
        return Drop.NOT_SELECTED
    if outcome == "harness_failed":
        return Drop.FAILED
    if row.get("token_count", 0) > 65_536:
        return Drop.OVER_LONG
    if "sing" in text:
        return Drop.UNDEFINED_TOOLS
    if '"["' in text:
        return Drop.UNPARSABLE
    if text in seen:
        return Drop.EXACT_DUPLICATES
    seen.add(text)
    return ""


def test_the_manifest_tells_every_filter_its_settings_and_its_count(tmp_path: Path) -> None:
    path = source(tmp_path / "a.jsonl", [line("a"), line("b", token_count=70_000)])
    made = mix(recipe(path), tmp_path / "out").made
    told = {report.name: report for report in made.filters}
    assert list(told) == [drop.value for drop in Drop]
    assert told["over_long"].settings == {"max_tokens": 65_536}
    assert told["over_long"].dropped == 1
    assert sum(report.dropped for report in made.filters) == 1
    assert "react" not in TOOLS, "the row's own tools are asked, not its harness's name"
