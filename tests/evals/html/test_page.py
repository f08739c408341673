"""The page says what the runs say, and nothing in it works as markup."""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path
from typing import Any

import pytest

from orchard_core.evals.html.chart import NARROW, WIDE
from orchard_core.evals.html.page import LONGEST, render
from orchard_core.evals.html.plot import cost_accuracy
from orchard_core.evals.html.view import TIMES, cell_views
from orchard_core.evals.join import join
from orchard_core.evals.matrix import build_matrix
from orchard_core.evals.transfer import transfer_table

from .making import ATTEMPTS, NASTY, PASSED, TASKS, write_matrix
from .reading import Element, read


@pytest.fixture
async def page(tmp_path: Path) -> Element:
    return read(render(build_matrix(await write_matrix(tmp_path / "m"))))


def rows(table: Element) -> list[list[str]]:
    return [[cell.text for cell in row.children] for row in table.one("tbody").all("tr")]


def test_each_cell_has_its_pass_rates_under_both_denominators(page: Element) -> None:
    found = {" ".join(row[0].split()[1:]): row for row in rows(page.one("table", class_="rates"))}
    assert found["react big"][1] == "100% 13.9 to 100%"
    assert found["react small"][1].startswith("50.0%")
    assert found["react small"][4] == "3 / 6 5 valid"
    assert found["cli:pi small"][3] != found["cli:pi small"][1], "one attempt was not the agent's doing"


def test_what_was_refused_is_named_with_the_reason(page: Element) -> None:
    refused = page.one("table", class_="rates").all("tr", class_="refused")
    told = [row.text for row in refused]
    assert told == [f"zeroclaw {TIMES} {model} set refused: needs a browser" for model in ("big", "small")]


def test_the_heat_map_has_a_square_for_every_harness_and_model(page: Element) -> None:
    table = page.one("section", id_="heat").one("table")
    assert [head.text for head in table.one("thead").all("th")] == ["harness", "big", "small"]
    squares = {
        row.children[0].text: [cell.text.split()[0] for cell in row.children[1:]]
        for row in table.one("tbody").all("tr")
    }
    assert squares == {
        "react": ["100%", "50.0%"],
        "cli:pi": ["66.7%", "16.7%"],
        "zeroclaw": ["refused:", "refused:"],
    }  # fmt: skip
    steps = [
        cell.attributes["class"] for row in table.one("tbody").all("tr")[:2] for cell in row.children[1:]
    ]
    assert steps == ["h10", "h5", "h7", "h2"]


def test_every_attempt_is_one_mark_that_leads_to_its_line(page: Element) -> None:
    marks = page.one("table", class_="grid").one("tbody").all("a")
    assert len(marks) == TASKS * ATTEMPTS * len(PASSED)
    assert sum(mark.text == "✓" for mark in marks) == sum(PASSED.values())
    assert {mark.text for mark in marks} == {"✓", "A", "I", "M", "H"}
    assert [mark.attributes["class"] for mark in marks if mark.text == "I"] == ["infra"]
    lines = {
        row.attributes["id"]
        for row in page.one("section", id_="rollouts").all("tr")
        if "id" in row.attributes
    }
    assert {mark.attributes["href"] for mark in marks} == {f"#{line}" for line in lines}


def test_a_line_of_a_rollout_says_how_to_read_it(page: Element, tmp_path: Path) -> None:
    first = page.one("details", id_="cell-1").one("tbody").all("tr")[0]
    told = [cell.text for cell in first.children]
    assert told[0] == "task-0 #0"
    assert told[1:7] == ["✓ completed", "1", "4", "52", "$0.2500", "2.0 s"]
    assert re.fullmatch(rf"orchard show {re.escape(str(tmp_path))}/m/cells/\S+ {told[7]}", told[8])


def test_endings_are_counted_by_outcome_and_attribution(page: Element) -> None:
    found = {tuple(row[:2]): row[2:] for row in rows(page.one("section", id_="endings").all("table")[0])}
    assert found["completed, passed", "agent"] == ["6", "4", "3", "1"]
    assert found["sandbox_failed", "infrastructure"] == ["0", "0", "1", "0"]


def test_unknown_costs_are_called_unknown_and_are_no_point_of_the_chart(page: Element) -> None:
    section = page.one("section", id_="cost")
    costs = [row[2] for row in rows(section.one("table"))]
    assert costs == ["$0.2500", "unknown", "$0.2500", "unknown"]
    labels = {text.text for text in section.all("svg")[0].all("text")}
    assert {"1", "3"} <= labels
    assert not labels & {"2", "4"}
    assert "US dollars a rollout" in labels


async def test_without_any_known_cost_tokens_stand_in_for_it(tmp_path: Path) -> None:
    found = read(render(build_matrix(await write_matrix(tmp_path / "m", prices=False))))
    labels = {text.text for text in found.one("section", id_="cost").all("svg")[0].all("text")}
    assert "Tokens a rollout" in labels
    assert any("4" in label for label in labels)
    assert "0" in labels
    assert "0k" not in labels


@pytest.mark.parametrize("prices", [True, False])
async def test_a_label_near_the_right_edge_of_the_plot_stands_at_the_left_of_its_point(
    tmp_path: Path, prices: bool
) -> None:
    cells = cell_views(build_matrix(await write_matrix(tmp_path / "m", prices=prices)), {})
    for width in (NARROW, WIDE):
        spec: Any = cost_accuracy(cells, width=width)
        assert spec is not None
        texts = [layer for layer in spec["layer"] if layer["mark"]["type"] == "text"]
        assert [layer["mark"]["align"] for layer in texts] == ["left", "right"]
        right = texts[1]["data"]["values"]
        assert max(row["price"] for row in spec["data"]["values"]) in [row["price"] for row in right]


def test_figures_of_the_headline_say_what_they_count(page: Element) -> None:
    assert "valid: scored, or ended by the agent's own doing" in page.text
    assert "cell 1: " in page.text


async def test_where_nothing_can_draw_the_tables_stand_alone_and_say_what_to_install(tmp_path: Path) -> None:
    found = read(render(build_matrix(await write_matrix(tmp_path / "m")), drawn=False))
    assert not found.all("figure")
    assert "pip install 'orchard-core[report]'" in found.one("section", id_="cost").text
    assert len(rows(found.one("section", id_="cost").one("table"))) == 4


def test_pairs_are_listed_with_corrected_p_values(page: Element) -> None:
    found = rows(page.one("section", id_="differences").all("table")[0])
    assert len(found) == 6
    assert all(float(row[5].strip("<")) <= float(row[6].split()[0].strip("<")) for row in found)


async def test_transfer_is_a_table_of_training_by_evaluating_harness(tmp_path: Path) -> None:
    report = build_matrix(await write_matrix(tmp_path / "m"))
    trained = [cell.model_copy(update={"train_harness": "react"}) for cell in report.cells]
    found = read(render(report.model_copy(update={"transfer": transfer_table(trained)})))
    table = found.one("section", id_="transfer").one("table")
    assert [head.text for head in table.one("thead").all("th")] == ["trained under", "react", "cli:pi"]
    assert [cell.text.split()[0] for cell in table.one("tbody").one("tr").children] == [
        "react",
        "75.0%",
        "41.7%",
    ]


def test_provenance_tells_what_is_shared_from_what_differs(page: Element) -> None:
    section = page.one("section", id_="provenance")
    shared = {item.one("dt").text: item.one("dd").text for item in section.one("dl").all("div")}
    assert shared["attempts"] == "2"
    assert shared["sandbox"] == "fake"
    assert {row[0] for row in rows(section.one("table"))} == {"configuration hash", "run"}


async def test_a_run_alone_is_a_page_without_comparisons(tmp_path: Path) -> None:
    matrix = await write_matrix(tmp_path / "m")
    [run, *_] = sorted((matrix / "cells").iterdir())
    found = read(render(build_matrix(run)))
    ids = {section.attributes["id"] for section in found.all("section")}
    assert not ids & {"heat", "differences", "transfer"}
    assert {"rates", "cost", "endings", "tasks", "rollouts", "provenance"} <= ids
    assert "open" in found.one("details", id_="cell-1").attributes


async def test_runs_side_by_side_are_compared(tmp_path: Path) -> None:
    matrix = await write_matrix(tmp_path / "m")
    runs = [build_matrix(path) for path in sorted((matrix / "cells").iterdir())]
    both = join([*runs, runs[0]])
    assert len({cell.key for cell in both.cells}) == 5, "the same run twice keeps both apart"
    assert len(both.differences) == 10
    assert read(render(both)).one("h1").text == f"3 harnesses {TIMES} 2 models on set"


def test_the_policy_allows_its_own_style_and_nothing_else(page: Element) -> None:
    [policy] = [
        meta for meta in page.all("meta") if meta.attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    style = page.one("style")
    digest = base64.b64encode(hashlib.sha256("".join(style.texts).encode()).digest()).decode()
    assert policy.attributes["content"].split("; ") == [
        "default-src 'none'",
        f"style-src 'sha256-{digest}'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    assert not page.all("script")


async def test_hostile_names_stay_text(tmp_path: Path) -> None:
    text = render(build_matrix(await write_matrix(tmp_path / "m", tail=NASTY)))
    found = read(text)
    assert not found.all("script") + found.all("img")
    assert len(found.all("style")) == 1
    assert all(not name.startswith("on") for element in found.all("a") for name in element.attributes)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)
    assert "49" not in found.one("h1").text, "a name is never a template"
    assert "<img src=x" in found.one("table", class_="grid").text


async def test_a_name_of_a_megabyte_is_cut(tmp_path: Path) -> None:
    long = build_matrix(await write_matrix(tmp_path / "m", tail="x"))
    tasks = [task.model_copy(update={"task": "y" * 1_000_000}) for task in long.cells[0].tasks]
    cell = long.cells[0].model_copy(update={"tasks": tuple(tasks)})
    long = long.model_copy(update={"cells": (cell, *long.cells[1:])})
    text = render(long)
    assert len(text) < 200_000
    assert "y" * (LONGEST + 1) not in text
